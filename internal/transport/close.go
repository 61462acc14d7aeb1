package transport

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CloseError says why a connection ended, or could not be opened. Reason is the best that is known: CloseLost where
// nobody said anything.
type CloseError struct {
	Reason forge.CloseReason
	Remote bool  // the peer closed it
	Err    error // for our log; may be nil
}

func (e *CloseError) Error() string {
	who := "here"
	if e.Remote {
		who = "by the peer"
	}
	if e.Err != nil {
		return fmt.Sprintf("connection closed %s: %v: %v", who, e.Reason, e.Err)
	}
	return fmt.Sprintf("connection closed %s: %v", who, e.Reason)
}

// Unwrap returns the cause.
func (e *CloseError) Unwrap() error { return e.Err }

// ResetError says that the peer gave one direction of a stream up, or asked us to.
type ResetError struct {
	Code protocol.ResetCode
}

func (e *ResetError) Error() string { return fmt.Sprintf("stream reset by the peer: %v", e.Code) }
