// Package fleet runs Forgeyard's own programs as real processes on this machine: one daemon, any number of agents, a relay
// in front of each agent if wanted. It is for stories told end to end and for chaos; no product code imports it.
//
// It starts, kills, stops and continues processes, and asks the daemon about the rest. It asserts nothing.
//
// A Fleet owns every process that it has started, the goroutine that waits for each, and the one that starts them. Close kills
// and joins them all, and then what they have left behind. If this process ends without that, the kernel kills the programs,
// and what they have started ends by itself, as it does after any agent.
package fleet
