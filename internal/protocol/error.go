package protocol

import "github.com/forgeyard/forgeyard/internal/forge"

// MaxErrorText bounds the text of an Error in bytes.
const MaxErrorText = 512

// ErrorCodeV1 is the stable code of an Error. One that this build does not know reads as Internal: the retry class says
// what to do.
type ErrorCodeV1 uint8

// RetryV1 says what to do after an Error. One that this build does not know reads as backoff.
type RetryV1 uint8

var (
	errorCodes = Enum[forge.ErrorCode]{
		1: forge.ErrorUnsupported, 2: forge.ErrorNotYetLog, 3: forge.ErrorNotYetRef, 4: forge.ErrorRate, 5: forge.ErrorInternal,
		6: forge.ErrorRefused,
	}
	errorNames = Enum[string]{1: "Unsupported", 2: "NotYetLog", 3: "NotYetRef", 4: "Rate", 5: "Internal", 6: "Refused"}
	retries    = Enum[forge.RetryClass]{
		1: forge.RetryStop, 2: forge.RetryOperator, 3: forge.RetryBackoff, 4: forge.RetryElsewhere, 5: forge.RetryDelayed,
		6: forge.RetryRecover, 7: forge.RetryConnection,
	}
	retryNames = Enum[string]{
		1: "Stop", 2: "Operator", 3: "Backoff", 4: "Elsewhere", 5: "Delayed", 6: "Recover", 7: "Connection",
	}
)

func (c ErrorCodeV1) String() string { return errorNames.Name(uint8(c)) }
func (r RetryV1) String() string     { return retryNames.Name(uint8(r)) }

// ErrorV1 answers a request that cannot be answered otherwise (09§263). Its text is static: never an internal one, never
// a trace, never anything of the request (09§264).
type ErrorV1 struct {
	Code  ErrorCodeV1
	Retry RetryV1
	Text  string `postcard:"max=512"`
}

// NewError returns the wire form.
func NewError(m *forge.Error) *ErrorV1 {
	return &ErrorV1{Code: ErrorCodeV1(errorCodes.Wire(m.Code)), Retry: RetryV1(retries.Wire(m.Retry)), Text: m.Text}
}

// Unsupported is the answer to a request of a type or schema that was not negotiated.
func Unsupported() *ErrorV1 {
	return NewError(&forge.Error{
		Code: forge.ErrorUnsupported, Retry: forge.RetryOperator, Text: "this message was not negotiated",
	})
}

// Tag implements Message.
func (*ErrorV1) Tag() Tag { return Tag{TypeError, 1} }

// Validate implements Message.
func (w *ErrorV1) Validate() error {
	var c Check
	c.That(w.Code != 0, "code", "is missing")
	c.That(w.Retry != 0, "retry", "is missing")
	c.Line("text", w.Text, MaxErrorText)
	return c.Err()
}

// Domain implements Domain.
func (w *ErrorV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.Error{
		Code:  errorCodes.Or(uint8(w.Code), forge.ErrorInternal),
		Retry: retries.Or(uint8(w.Retry), forge.RetryBackoff),
		Text:  w.Text,
	}, nil
}
