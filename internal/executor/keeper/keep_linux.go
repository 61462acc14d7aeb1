package keeper

import "os"

// exitUnused is the exit code of a keeper that never had an attempt to keep.
const exitUnused = 2

// Open makes the system of an attempt's processes, and the channel on which its news come.
type Open func(*Plan) (System, <-chan Exit, error)

// Keep runs one attempt for the agent at the other end of a socket, and returns when all of it is over and said: the exit
// code of this process, which has nothing else to do and in which its goroutines end. more, which may be nil, has requests
// of somebody other than the agent.
func Keep(agent *os.File, open Open, more <-chan Request) int {
	in := make(chan Request)
	go readRequests(agent, in)
	first, ok := <-in
	if !ok || first.Setup == nil {
		return exitUnused
	}
	out := newReports(agent, mostReports(len(first.Setup.Steps)))
	sys, exits, err := open(first.Setup)
	if err != nil {
		return exitUnused
	}
	t, err := newTimer()
	if err != nil {
		return exitUnused
	}
	out.say(Report{Ready: true})
	NewMachine(first.Setup, sys, t, out.say).Run(in, more, exits)
	if dir := first.Setup.SecretsDir; dir != "" {
		sys.AsStep(func() { _ = os.RemoveAll(dir) }) // where it can outlive this process, the agent removes it again
	}
	out.close()
	return 0
}

// reportsPerStep bounds what is said about a step, so that a machine never waits for an agent that is stopped.
const reportsPerStep = 5 + maxRemarks

// mostReports bounds what is said about an attempt with some steps.
func mostReports(steps int) int { return reportsPerStep*steps + 8 }

// readRequests hands on what the agent says, until it is gone. It ends with the process.
func readRequests(agent *os.File, in chan<- Request) {
	defer close(in)
	r := newMessages(agent)
	for {
		var q Request
		if r.next(&q) != nil {
			return
		}
		in <- q
	}
}
