package control

import (
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// RunReason says in one sentence why a run is where it is.
func RunReason(r *store.Run) string {
	switch r.State {
	case forge.RunPlanned:
		if r.CancelRequested {
			return "it is being cancelled"
		}
		return "none of its jobs has begun"
	case forge.RunRunning:
		if r.CancelRequested {
			return "it is being cancelled"
		}
		return "its jobs run"
	case forge.RunSucceeded:
		return "every job ended well"
	case forge.RunFailed:
		return "a job failed"
	case forge.RunCancelled:
		if r.CancelRequested {
			return "it was cancelled" + by(r.CancelActor)
		}
		return "a job of it was cancelled"
	case forge.RunError:
		return "a job could not be carried out, by no fault of its own"
	}
	return ""
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return " by " + actor
}

// RunExitCode is the exit code of a command that follows a run which has ended: 0, 1 failed, 2 cancelled, 3 by our fault.
func RunExitCode(s forge.RunState) int {
	switch s {
	case forge.RunSucceeded:
		return forge.Succeeded.ExitCode()
	case forge.RunFailed:
		return forge.ExitCode.ExitCode()
	case forge.RunCancelled:
		return forge.Cancelled.ExitCode()
	default:
		return forge.Lost.ExitCode()
	}
}

// JobReason says in one sentence why a job is where it is, from its row alone. Explain says more.
func JobReason(j *store.Job) string {
	a := &j.Authority
	switch j.State {
	case forge.JobWaiting:
		return "it waits for what it needs"
	case forge.JobReady:
		if a.Attempts > 0 {
			return fmt.Sprintf("it waits for a runner again, after attempt %d", a.Attempts)
		}
		return "it waits for a runner"
	case forge.JobOffered:
		return "it is offered to a runner"
	case forge.JobActive:
		if a.CancelRequested {
			return "it is being cancelled"
		}
		return "a runner has it"
	case forge.JobSucceeded:
		return "it ended well"
	case forge.JobFailed:
		if j.Reason != "" {
			return j.Reason
		}
		return "its last attempt " + ClassReason(a.Outcome)
	case forge.JobCancelled:
		return "it was cancelled"
	case forge.JobSkipped:
		return j.Reason
	}
	return ""
}

// ClassReason continues a sentence about an attempt that ended so.
func ClassReason(c forge.Class) string {
	switch c {
	case forge.Succeeded:
		return "ended well"
	case forge.ExitCode:
		return "ended with an exit code other than 0"
	case forge.Signal:
		return "was ended by a signal"
	case forge.TimedOut:
		return "took longer than it may"
	case forge.OutOfMemory:
		return "needed more memory than it may use"
	case forge.PidsExhausted:
		return "needed more processes than it may have"
	case forge.DiskFull:
		return "filled its workspace"
	case forge.OutputMissing:
		return "did not make an output that is required"
	case forge.OutputTooLarge:
		return "made an output that is too large"
	case forge.OutputRefused:
		return "made an output that cannot be kept"
	case forge.Cancelled:
		return "was cancelled"
	case forge.InputFetch:
		return "could not get an input"
	case forge.CorruptInput:
		return "got an input whose bytes are not what they should be"
	case forge.DiskInsufficient:
		return "found too little room on its runner's disk"
	case forge.PathIncompatible:
		return "has a file whose name its runner's system cannot hold"
	case forge.SandboxSetup:
		return "could not be confined as it asked"
	case forge.UploadFailed:
		return "could not deliver its outputs"
	case forge.Interrupted:
		return "was stopped by its runner"
	case forge.Lost:
		return "was lost: its runner crashed, or was not heard of in time"
	}
	return "ended in a way that is not known"
}

// AttemptReason says in one sentence why an attempt is where it is, or how it ended. It is empty for one that goes its way.
func AttemptReason(a *store.Attempt) string {
	switch s := a.Authority.State; {
	case !s.Ended():
		return ""
	case s == forge.AttemptRefused:
		return "its runner refused it: " + RejectReason(a.Reject)
	case a.Result == nil && s == forge.AttemptLost && a.Accepted == 0:
		return "its runner did not take the offer in time"
	case a.Result == nil:
		return "it " + ClassReason(a.Authority.Outcome)
	}
	return "it " + resultReason(a)
}

// resultReason tells what the numbers of a result add to its class.
func resultReason(a *store.Attempt) string {
	r, c := a.Result, a.Authority.Outcome
	text := ClassReason(c)
	switch c {
	case forge.ExitCode:
		text = fmt.Sprintf("ended with exit code %d", r.ExitCode)
	case forge.Signal:
		text = fmt.Sprintf("was ended by signal %d", r.Signal)
		if name := SignalName(r.Signal); name != "" {
			text += " (" + name + ")"
		}
	case forge.TimedOut, forge.OutOfMemory, forge.PidsExhausted, forge.DiskFull:
		if r.Limit > 0 {
			text += ": " + MeasureText(c, r.Limit)
		}
		if r.Peak > r.Limit && r.Limit > 0 {
			text += ", and got to " + MeasureText(c, r.Peak)
		}
	}
	if step, ok := decidingStep(r); ok && c.Fault() == forge.FaultUser {
		text += fmt.Sprintf(", in step %d", step+1)
	}
	return text
}

// decidingStep is the first step that ended as the whole did.
func decidingStep(r *forge.Result) (uint16, bool) {
	for _, s := range r.Steps {
		if s.Class == r.Class && s.Class != forge.Succeeded && s.ExitCode == r.ExitCode {
			return s.Index, true
		}
	}
	return 0, false
}

// MeasureUnit is the unit of a result's limit and peak.
func MeasureUnit(c forge.Class) string {
	switch c {
	case forge.TimedOut:
		return "milliseconds"
	case forge.PidsExhausted:
		return "processes"
	default:
		return "bytes"
	}
}

// MeasureText writes an amount with its unit for people.
func MeasureText(c forge.Class, n uint64) string {
	switch MeasureUnit(c) {
	case "milliseconds":
		return (time.Duration(min(n, uint64(forge.MaxRunTimeout/time.Millisecond))) * time.Millisecond).String()
	case "processes":
		return fmt.Sprintf("%d processes", n)
	}
	return bytesText(n)
}

// bytesText writes a size with one decimal at most.
func bytesText(n uint64) string {
	for _, u := range []struct {
		size forge.Bytes
		name string
	}{{forge.TiB, "TiB"}, {forge.GiB, "GiB"}, {forge.MiB, "MiB"}, {forge.KiB, "KiB"}} {
		if n >= uint64(u.size) {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// RejectReason says why a runner refused, for people.
func RejectReason(r forge.RejectReason) string {
	switch r {
	case forge.RejectDraining:
		return "it is draining"
	case forge.RejectResourcePressure:
		return "it is short of resources"
	case forge.RejectCapabilityChanged:
		return "it can no longer do what the job needs"
	case forge.RejectDiskInsufficient:
		return "its disk has too little room"
	case forge.RejectUnsupportedSpec:
		return "it cannot do what the job asks for"
	case forge.RejectLocalPolicy:
		return "its owner's policy forbids it: see policy in the settings of its agent (a job without a sandbox needs allow_unconfined: true, one on the host's network allow_host_network: true)"
	case forge.RejectPreparation:
		return "it could not prepare the job"
	case forge.RejectSpecMismatch:
		return "the specification that arrived is not the one that was offered"
	case forge.RejectAlreadyTaken:
		return "it had this lease before"
	}
	return "for a reason that it did not say"
}

// signalNames are the numbers that Linux and macOS share.
var signalNames = map[uint8]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV",
	13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
}

// SignalName names a signal that is called the same everywhere, and is empty for others.
func SignalName(n uint8) string { return signalNames[n] }
