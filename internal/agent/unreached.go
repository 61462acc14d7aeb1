package agent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// UnreachedError says for people why nothing came of asking the daemon at an endpoint. What the parts of the road have
// to say about it is in Err.
type UnreachedError struct {
	Endpoint string
	Err      error
}

// Error says which daemon it is, and what is wrong with it.
func (e *UnreachedError) Error() string {
	return fmt.Sprintf("the daemon at %s: %s", e.Endpoint, e.Why())
}

// Why is Error without the daemon's address.
func (e *UnreachedError) Why() string {
	why, _ := e.look()
	return why
}

// Unwrap returns what the parts of the road say.
func (e *UnreachedError) Unwrap() error { return e.Err }

// Mend says what to do, or nothing where the error itself says it.
func (e *UnreachedError) Mend() string {
	_, mend := e.look()
	return mend
}

// Stranger reports whether a daemon is there that is not the one which was asked for.
func (e *UnreachedError) Stranger() bool {
	return errors.Is(e.Err, trust.ErrPin) || errors.Is(e.Err, trust.ErrStranger)
}

func (e *UnreachedError) look() (why, mend string) {
	if name, ok := errors.AsType[*net.DNSError](e.Err); ok {
		return "its name cannot be resolved: " + name.Err, "Check the name, or write the address instead."
	}
	if skew, ok := errors.AsType[*trust.ClockError](e.Err); ok {
		return skew.Error(), ""
	}
	if mismatch, ok := errors.AsType[*protocol.Mismatch](e.Err); ok {
		return "no version of the protocol in common: " + mismatch.Error(), "Install the same release on both machines."
	}
	for _, kind := range []error{trust.ErrPin, trust.ErrStranger} {
		if errors.Is(e.Err, kind) {
			return kind.Error(), ""
		}
	}
	closed, ok := errors.AsType[*transport.CloseError](e.Err)
	if ok && closed.Reason == forge.CloseLost && !closed.Remote || errors.Is(e.Err, context.DeadlineExceeded) {
		return "nobody answers there", "Check that the daemon runs, that this is its address for agents, and that UDP passes to it."
	}
	return e.Err.Error(), "Check that the daemon runs, and read its log."
}
