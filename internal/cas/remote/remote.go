// Package remote is the content store at the other end of a link: the agent's half of it, a cas.Store, and the daemon's
// half, which serves one. What goes over the streams is written down in protocols/internal/cas-transfer.md.
//
//	agent   Client.For(attempt) ─ Missing, CopyFrom, Put ─▶ CasUpload ─────▶ Connection.Serve ─▶ Scope
//	                            ◀─ Open, CopyTo ─────────── CasDownload ◀──────────────────────────┘
//
// The client's half outlives connections: what a cut interrupts goes on over the next one, from what the receiver holds, until its
// context ends. Many small objects follow each other on one stream; a large one has its own. The daemon's half asks the
// Scope about every object, and knows nothing of leases, projects and disks itself.
//
// Neither half trusts the other. Bytes are hashed by whoever gets them. What one connection may hold in memory is
// bounded, and so is what all do; a peer that is slow, silent or without an end loses its stream. A sender keeps what is on
// its way near what the road holds, so that control messages stay fast.
//
// Serve runs in its caller's goroutine. It and the calls of a Client own the goroutines that they start and join them.
package remote

import (
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// What the exchange keeps to, in bytes and counts. The protocol's own bounds are those of casv1.
const (
	// Small is up to which size an object travels among others on one stream.
	Small = casv1.MaxRun
	// MaxAsked is how many requests of a download stream may wait for their answer.
	MaxAsked = 256
	// MaxUnheard is how many small objects of an upload stream may wait for their result.
	MaxUnheard = 4096
	// MaxStreams is how many streams of each kind a peer may have at once.
	MaxStreams = 8
	// ackAfter is how many encoded bytes may go unacknowledged by their receiver.
	ackAfter = 16 << 10
	// maxWorkers is how many small objects of a stream are stored at once. They share the flushes of the disk.
	maxWorkers = 256
)

// What the exchange keeps to, in time.
const (
	idleWithin   = 60 * time.Second // for the next frame of a stream that is in use
	runWithin    = 15 * time.Second // for the bytes of a run, and a second more for each slowest
	slowest      = 8 << 10          // bytes a second
	writeWithin  = 30 * time.Second // for the peer to take what it is sent
	memoryWithin = 3 * time.Second  // for memory to come free
)

// Errors besides those of package cas, tested with errors.Is.
var (
	// ErrStale says that the lease has ended: nothing moves for this attempt any more.
	ErrStale = errors.New("the attempt's lease has ended")
	// ErrQuota says that the attempt has sent as much as its outputs may hold.
	ErrQuota = errors.New("more bytes than the attempt may upload")
	// ErrPresent is what a Scope returns where there is nothing to send.
	ErrPresent = errors.New("the object is there already")
	// ErrBusy is what a Scope returns where another stream is at the same object; it may be tried again later.
	ErrBusy = errors.New("another upload of the object is under way")
	// ErrInterrupted says that a connection ended during a Put whose reader cannot go back.
	ErrInterrupted = errors.New("the connection ended, and the bytes cannot be read again")
)

// RefusedError says that the other end ended a transfer for good, for a reason that has no error of its own.
type RefusedError struct {
	Ref digest.Ref // zero where it was the stream
	Why fmt.Stringer
}

func (e *RefusedError) Error() string {
	if e.Ref.IsZero() {
		return fmt.Sprintf("the daemon refused the stream of objects: %v", e.Why)
	}
	return fmt.Sprintf("the daemon refused object %v: %v", e.Ref, e.Why)
}

// daemonStore names the other end in errors.
const daemonStore = "the daemon's store"

// errorOf is what an outcome means to the client; nil for those that are good. again says that it may pass.
func errorOf(ref digest.Ref, outcome casv1.OutcomeV1) (err error, again bool) {
	switch outcome {
	case casv1.OutcomeStored, casv1.OutcomePresent:
		return nil, false
	case casv1.OutcomeNotFound:
		return fmt.Errorf("%w: %v", cas.ErrNotFound, ref), false
	case casv1.OutcomeDigestMismatch:
		return &cas.CorruptError{Ref: ref, Where: daemonStore}, false
	case casv1.OutcomeQuota:
		return fmt.Errorf("%w: %v", ErrQuota, ref), false
	case casv1.OutcomeStorageFull:
		return fmt.Errorf("the daemon: %w", cas.ErrFull), true
	case casv1.OutcomeStaleLease:
		return ErrStale, false
	default:
		return &RefusedError{ref, outcome}, false
	}
}

// outcomeOf is what the client hears of an error of a Scope. ok is false for errors that say nothing about the object.
func outcomeOf(err error) (outcome casv1.OutcomeV1, ok bool) {
	var mismatch *cas.MismatchError
	var corrupt *cas.CorruptError
	switch {
	case err == nil:
		return casv1.OutcomeStored, true
	case errors.Is(err, ErrPresent):
		return casv1.OutcomePresent, true
	case errors.Is(err, cas.ErrNotFound):
		return casv1.OutcomeNotFound, true
	case errors.Is(err, ErrStale):
		return casv1.OutcomeStaleLease, true
	case errors.Is(err, ErrQuota):
		return casv1.OutcomeQuota, true
	case errors.Is(err, cas.ErrFull):
		return casv1.OutcomeStorageFull, true
	case errors.As(err, &mismatch), errors.As(err, &corrupt):
		return casv1.OutcomeDigestMismatch, true
	}
	return 0, false
}
