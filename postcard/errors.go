package postcard

import (
	"errors"
	"strconv"
	"strings"
)

// What can be wrong with the input of a decoder. All of them are found with errors.Is in what
// Unmarshal and Take return.
var (
	ErrTruncated    = errors.New("input ends inside the value")
	ErrTrailing     = errors.New("bytes left after the value")
	ErrVarint       = errors.New("varint too long or too large for its type")
	ErrNotMinimal   = errors.New("varint longer than its value needs")
	ErrBool         = errors.New("bool is neither 0 nor 1")
	ErrOption       = errors.New("option tag is neither 0 nor 1")
	ErrUTF8         = errors.New("string is not UTF-8")
	ErrChar         = errors.New("char is not exactly one character")
	ErrDiscriminant = errors.New("no such variant")
	ErrMapKey       = errors.New("map key repeated or out of order")
)

// What both directions refuse.
var (
	// ErrLimit: a list, map, string or byte string is longer than its tag allows, or decoding
	// would allocate more than Options.MaxAlloc.
	ErrLimit = errors.New("over the limit")
	// ErrDepth: values nest deeper than Options.MaxDepth, a pointer cycle included.
	ErrDepth = errors.New("nested too deeply")
	// ErrType: the Go value given does not fit: nil, not a pointer, or a dynamic value of
	// another type than its Type says.
	ErrType = errors.New("wrong Go value")
)

// What is wrong with a type, found when its plan is built and so at the first use of the type.
var (
	// ErrUnsupported: the format has no form for the type, or only one that depends on the
	// platform (int, uint).
	ErrUnsupported = errors.New("unsupported type")
	// ErrNoLimit: a slice, string or map has no max in its tag.
	ErrNoLimit = errors.New("no limit given")
	// ErrTag: a tag cannot be read, or says what its field cannot do.
	ErrTag = errors.New("bad tag")
	// ErrSyntax: the text given to ParseType is not a type.
	ErrSyntax = errors.New("bad type syntax")
)

// Error says what went wrong and where. It never holds bytes or numbers taken from the value or
// the input, which may be secret; Detail names limits and types only.
type Error struct {
	Op     string // "decode", "encode", "plan" or "parse"
	Path   string // Go path of the field: agentv1.LeaseOffer.Attempts[3].Phase
	Offset int    // where in the input (or type text) the faulty item starts; -1 if neither
	Err    error  // one of the sentinels of this package
	Detail string // what the sentinel leaves open; may be empty
}

// Error gives one line: operation, path, offset, fault.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("postcard: " + e.Op)
	if e.Path != "" {
		s.WriteString(" " + e.Path)
	}
	if e.Offset >= 0 {
		s.WriteString(" at byte " + strconv.Itoa(e.Offset))
	}
	s.WriteString(": " + e.Err.Error())
	if e.Detail != "" {
		s.WriteString(": " + e.Detail)
	}
	return s.String()
}

// Unwrap gives the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// within adds the enclosing field or item to the path of an error on its way out, so that paths
// cost nothing as long as nothing fails.
func within(err error, segment string) error {
	if e, ok := err.(*Error); ok {
		e.Path = segment + e.Path
	}
	return err
}

func withinItem(err error, i int) error {
	return within(err, "["+strconv.Itoa(i)+"]")
}

// done completes an error at the edge of the package.
func done(err error, op string, o *op) error {
	if e, ok := err.(*Error); ok && e.Op == "" {
		e.Op = op
		e.Path = o.title() + e.Path
	}
	return err
}
