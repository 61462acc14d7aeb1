// Package keeper keeps one attempt's processes: it runs the steps, ends them for whatever reason comes first, and says how it
// all ended. It has two halves, in two processes, and knows nothing of what confines the steps.
//
//		agent: Prepare ── socket pair: plan, start, secrets, stop, deadlines ──▶ host: Keep ── System ──▶ steps
//		          ▲    ◀── steps that began and ended, the outcome ─────────────    Machine, its own watchdog
//		          └─────────────── two pipes: what the steps print ─────────────────────────────────────┘
//
//	  - The agent's half is a workload of package executor. It alone calls the Output, holds a second watchdog, and has the
//	    host killed where its keeper does not answer.
//	  - The host's half is the Machine and what feeds it. The host is a process of the executor's: a supervisor on the machine
//	    itself (executor/process), or the first process of a sandbox (executor/native). System is what it does to processes.
//
// Secrets travel over the socket pair only, after the plan, and into variables or into files in memory.
//
// Where the host does not bound what the attempt writes, the agent's half watches that, and ends it as DiskFull where it is
// more than the spec's disk. What a step has removed counts while a descriptor holds it; what only a mapping holds is not
// seen, nor what lies deeper than folder.Measure goes.
//
// Goroutines: each workload has a pump, which alone calls its Output, a waiter for its host, an enforcer for kills that
// are overdue, and a watch over its disk. All of them have ended when Done is closed. Those of Keep end with its process.
package keeper
