// Package sim attacks authority: it runs the real cores of agents and daemons in a world of its own, with clocks that
// drift, a network that cuts, duplicates and delays, processes that die, pause and are copied, and a store that
// interleaves, stalls and forgets to answer, and it checks after every step that what must never happen has not.
//
// A schedule follows entirely from its seed: the same seed is the same schedule, event for event. The world is one loop
// over a queue of events in virtual time; nothing sleeps and nothing runs beside it. After the faults a schedule runs on
// without any, and then everything must end: every job, lease, process and slot.
//
//	world      the loop, virtual time, randomness, the trace
//	store      rows, row locks, transactions in two modes: one at a time, or READ COMMITTED with exactly the locks that
//	           a rule asks for, other transactions running between its statements
//	network    connections: ordered inside, unordered among each other
//	agent      hosts, agent processes around runner/core, sandboxes with their pid 1
//	daemon     daemon processes around daemon/agents/core
//	faults     what goes wrong, and when
//	check      the invariants, by id
//	states     interesting states, which must have been reached for a run to count
//
// The world may not run schedules concurrently with itself; many worlds may run at once.
package sim
