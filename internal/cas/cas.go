// Package cas is the content store as its users see it: objects named by digest and size, read and written through small
// interfaces, so that a disk, the other end of a link and a view with fewer rights are the same thing to whoever copies.
//
// An object is bytes under their BLAKE3 digest and size. It has no owner, no time and no second version, and what is
// there never changes. Whoever reads it checks it: a reader says io.EOF only after it has seen that all the bytes together
// were the object, so bytes may be written anywhere as they come, but nobody relies on them before that (07§42, 09§91).
//
//	Store        a place that has objects and takes them
//	Tiered       a near store before a far one; what is damaged near is fetched again from far
//	Only         a store of which only some objects may be had; the others look absent
//	Copy         what a place lacks, from another, each object once
//	Fetch        a tree and all below it
//	Walk         a tree as paths, checked against what it says of itself
//
// Absent and forbidden look alike, in the error and in what it costs to find out (09§93). Nothing here lists what a store
// has. The functions own the goroutines that they start and have joined them when they return.
package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Errors of stores, tested with errors.Is.
var (
	// ErrNotFound says that there is no such object, or none for the one who asks.
	ErrNotFound = errors.New("no such object")
	// ErrFull says that there is no room for an object: the disk is full, or a bound of the store is reached by objects
	// that may not be given up. The cause is wrapped. It may go away; nothing was stored.
	ErrFull = errors.New("no room in the object store")
)

// CorruptError says that a place gave bytes which are not the object that was asked for, or could not read them. What was
// read so far must not be used. Another place may have the object in order.
type CorruptError struct {
	Ref   digest.Ref
	Where string // for people: the store or peer
	Err   error  // why it could not be read; nil where the bytes were wrong
}

func (e *CorruptError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("object %v in %s cannot be read: %v", e.Ref, e.Where, e.Err)
	}
	return fmt.Sprintf("object %v in %s is damaged: its bytes are others", e.Ref, e.Where)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// MismatchError says that the bytes offered for an object are not that object. Nothing of them was kept.
type MismatchError struct {
	Ref digest.Ref // what was promised
	Got digest.Ref // what came; where more came than promised, that much and a digest of zero
}

func (e *MismatchError) Error() string {
	if e.Got.Digest.IsZero() {
		return fmt.Sprintf("the bytes for object %v are more than that (%d and on)", e.Ref, e.Got.Bytes)
	}
	return fmt.Sprintf("the bytes for object %v are another object, %v", e.Ref, e.Got)
}

// Source is where objects are had from. All methods may be called by many at once.
type Source interface {
	// Open gives the bytes of an object, from the first on. The error is ErrNotFound, a *CorruptError where the damage
	// shows at once, or one of the road to it. The reader's Read returns io.EOF only if everything that it gave was the
	// object, and a *CorruptError otherwise. The caller closes it, and may do so early.
	Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error)
}

// Sink is where objects go. All methods may be called by many at once, and repeated.
type Sink interface {
	// Missing returns those of refs that the sink has not, in their order, each once. There may be any number of them.
	Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error)
	// Put stores an object. When it returns nil the object is verified and visible, and as durable as the sink makes its
	// objects. An object that is there already is no error, and r may be left unread. The error is a *MismatchError where
	// r gave something else, ErrFull, what r returned, or one of the road. Nothing partial is ever visible.
	Put(ctx context.Context, ref digest.Ref, r io.Reader) error
}

// Store has objects and takes them.
type Store interface {
	Source
	Sink
}

// Filer is a reader of an object that stands in a file of its own. Whoever wants to clone that file does so and then
// reads the object to its end, which says whether what it cloned is right. The file is for reading and belongs to the
// reader; its offset is the reader's too, so use it only by position.
type Filer interface {
	File() *os.File
}

// Plain is a reader of an object that can also give the bytes without checking that they are the object, to one who
// does that in any case.
type Plain interface {
	// Plain returns the bytes as they are. The reader itself is then not read, only closed.
	Plain() io.Reader
	// Wrong is told that they were not the object, and returns the error that the reader would have ended in.
	Wrong() error
}

// PutFunc stores an object, as Sink's method does.
type PutFunc = func(ctx context.Context, ref digest.Ref, r io.Reader) error

// CopierFrom is a sink that knows a better way to take many objects than one Put after another. Copy uses it,
// unless the source knows one.
type CopierFrom interface {
	// CopyFrom stores those of refs that are missing, from src. See Copy.
	CopyFrom(ctx context.Context, src Source, refs []digest.Ref) error
}

// CopierTo is a source that knows a better way to give many objects than one Open after another. Copy uses it.
type CopierTo interface {
	// CopyTo gives dst those of refs that it lacks. See Copy.
	CopyTo(ctx context.Context, dst Sink, refs []digest.Ref) error
}
