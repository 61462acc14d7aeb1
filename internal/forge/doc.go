// Package forge is the domain: every noun that Forgeyard speaks about, as a value.
//
// It holds identities, states, leases, attempts, outcomes, capabilities, policies and the messages that an agent and a
// daemon exchange, and it validates them. It decides nothing over time: which change of state is legal stands in
// lifecycle, who may make it in authority. It knows no encoding: what travels is said by the protocol packages, which
// convert at the edge.
//
// Pure: no I/O, no goroutine, no clock, no randomness. Every value may be copied and shared.
package forge
