package forge

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Bounds of what one attempt may report.
const (
	MaxStepResults = 256
	MaxOutputRefs  = 512
)

// Result is how the workload of an attempt ended. It is frozen when the workload has ended and never changes after.
type Result struct {
	Class    Class
	ExitCode uint8         // of the step that decided; meaningful with ExitCode
	Signal   uint8         // that ended the step; meaningful with Signal
	Limit    uint64        // that was passed, in the unit of the class (bytes, processes, milliseconds)
	Peak     uint64        // measured against it
	Steps    []StepResult  // at most MaxStepResults, in order
	Duration time.Duration // of the workload
}

// StepResult is how one step ended.
type StepResult struct {
	Index    uint16
	Class    Class
	ExitCode uint8
	Signal   uint8
	Start    WallTime
	Duration time.Duration
}

// Validate checks classes and bounds.
func (r Result) Validate() error {
	if !r.Class.Valid() {
		return invalid("result class", uint8(r.Class))
	}
	if len(r.Steps) > MaxStepResults {
		return fmt.Errorf("%w: %d step results, at most %d", ErrInvalid, len(r.Steps), MaxStepResults)
	}
	for i, s := range r.Steps {
		if !s.Class.Valid() {
			return fmt.Errorf("step result %d: %w", i, invalid("class", uint8(s.Class)))
		}
		if s.Duration < 0 {
			return fmt.Errorf("step result %d: %w", i, invalid("duration", s.Duration))
		}
	}
	return nil
}

// OutputRef names what an attempt uploaded for one declared output.
type OutputRef struct {
	Output uint16 // index in the spec's outputs
	Ref    digest.Ref
	Tree   bool // Ref is a tree, else a single object
}

// LogSeq counts the frames of an attempt's log from 1. Zero is "none yet".
type LogSeq uint64

// LogSeal closes a log: nothing may follow Last, and the daemon's copy has this many bytes and this hash.
type LogSeal struct {
	Last  LogSeq
	Bytes uint64
	Hash  digest.Digest
}

// Completion asks the daemon to accept the result of an attempt (07§89). Message, Result and CancelSeen are frozen
// together in the agent's journal when the workload has ended; the rest is added once and sent as often as needed.
type Completion struct {
	Context    AttemptContext
	Message    MessageID
	Result     Result
	CancelSeen bool  // a user's cancel reached the workload before it ended, or kept it from starting
	Capture    Class // Succeeded, or why the outputs of a good workload could not be delivered
	Outputs    []OutputRef
	Log        LogSeal
	Hash       digest.Digest // ResultHash of all of the above
}

// Outcome is the class that the completion claims: of the workload, else of its outputs.
func (c *Completion) Outcome() Class {
	switch {
	case c.Result.Class == Lost:
		return Lost // the deadline's kill is never anybody's success or failure
	case c.CancelSeen:
		return Cancelled
	case c.Result.Class != Succeeded:
		return c.Result.Class
	default:
		return c.Capture
	}
}

// Validate checks everything that can be checked without the daemon's rows.
func (c *Completion) Validate() error {
	if err := c.Context.Validate(); err != nil {
		return err
	}
	if c.Message.IsZero() {
		return missing("completion message id")
	}
	if err := c.Result.Validate(); err != nil {
		return err
	}
	if !c.Capture.Valid() {
		return invalid("capture class", uint8(c.Capture))
	}
	if len(c.Outputs) > MaxOutputRefs {
		return fmt.Errorf("%w: %d output references, at most %d", ErrInvalid, len(c.Outputs), MaxOutputRefs)
	}
	for i, o := range c.Outputs {
		if o.Ref.Digest.IsZero() {
			return fmt.Errorf("output reference %d: %w", i, missing("digest"))
		}
	}
	if c.Hash != c.ResultHash() {
		return fmt.Errorf("%w: the completion's hash is not that of its contents", ErrInvalid)
	}
	return nil
}

// ResultHash is the digest of all that the completion claims. A daemon that gets one message id with two hashes
// refuses the second (reliability I03). The encoding is internal to this function and only ever compared.
func (c *Completion) ResultHash() digest.Digest {
	b := make([]byte, 0, 256+64*len(c.Outputs)+32*len(c.Result.Steps))
	for _, id := range [...]ULID{
		c.Context.Job.ULID, c.Context.Attempt.ULID, c.Context.Lease.ULID, c.Context.Runner.ULID,
		c.Context.Session.ULID, c.Message.ULID,
	} {
		b = append(b, id[:]...)
	}
	b = append(b, c.Context.Spec[:]...)
	b = append(b, byte(c.Result.Class), c.Result.ExitCode, c.Result.Signal, byte(c.Capture), flag(c.CancelSeen))
	b = appendInts(b, c.Result.Limit, c.Result.Peak, uint64(c.Result.Duration), uint64(len(c.Result.Steps)))
	for _, s := range c.Result.Steps {
		b = append(b, byte(s.Class), s.ExitCode, s.Signal)
		b = appendInts(b, uint64(s.Index), uint64(s.Start), uint64(s.Duration))
	}
	b = appendInts(b, uint64(len(c.Outputs)))
	for _, o := range c.Outputs {
		b = append(b, o.Ref.Digest[:]...)
		b = append(b, flag(o.Tree))
		b = appendInts(b, uint64(o.Output), o.Ref.Bytes)
	}
	b = appendInts(b, uint64(c.Log.Last), c.Log.Bytes)
	b = append(b, c.Log.Hash[:]...)
	return digest.Result.Sum(b)
}

func appendInts(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
