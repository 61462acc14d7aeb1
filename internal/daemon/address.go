package daemon

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ForAgents is AddressError.For of the address at which agents come.
const ForAgents = "agents, over UDP"

// AddressError says that the daemon cannot have an address that its settings name.
type AddressError struct {
	For     string // who comes there
	Address string
	Err     error
}

// Error says which address it is and why.
func (e *AddressError) Error() string {
	var call *os.SyscallError
	why := e.Err
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		why = errInUse
	case errors.As(e.Err, &call):
		why = call.Err // what is around it names the address once more
	}
	return fmt.Sprintf("the address %s for %s cannot be used: %v", e.Address, e.For, why)
}

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.Err }

var errInUse = errors.New("another program uses it")
