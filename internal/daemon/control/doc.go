// Package control owns runs and runners on the daemon: it takes submissions in, settles runs as their jobs end, gives
// ready jobs to runners, cancels, explains, and carries out what an administrator decides.
//
//	submit ──one transaction──► run Planned, jobs Waiting, settled once
//	store changes ─┐
//	agents change ─┼─► loop: settle what is unsettled, then place what is ready ──Config.Place──► agents ──Offer──► store
//	every second ──┘
//
// Everything that it does follows from what is stored now, never from what it remembers: it may stop anywhere and start
// again, two of its rounds may overlap, and a wish that comes to nothing (an offer that the store refuses, a runner that
// is gone) is simply wished again. What it remembers only makes it more patient: since when a job waits, and which
// wishes are on their way.
//
// Which change of state is legal is decided by package lifecycle, who holds a job by package authority, and which runner
// suits by package scheduler; here stand settle, the rule that turns a run and its jobs into what happens next, and the
// pauses between offers that come to nothing. It refuses specifications that ask for what this version cannot do.
//
// Run is the only goroutine, and its caller owns it. All other methods may be called from any goroutine.
package control
