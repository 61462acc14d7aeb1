package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// errColumn is returned for a column that does not hold what this build would have written.
var errColumn = errors.New("store: a column holds something else than expected")

// bits reads an id or a digest.
type bits[T ~[16]byte | ~[32]byte] struct{ to *T }

// Scan implements sql.Scanner.
func (b bits[T]) Scan(src any) error {
	from, ok := src.([]byte)
	if to := toSlice(b.to); ok && len(from) == len(to) {
		copy(to, from)
		return nil
	}
	return fmt.Errorf("%w: %T for an id or a digest", errColumn, src)
}

func toSlice[T ~[16]byte | ~[32]byte](v *T) []byte {
	switch p := any(v).(type) {
	case *forge.ULID:
		return p[:]
	case *digest.Digest:
		return p[:]
	case *forge.JobSpecID:
		return p[:]
	}
	panic("store: a type of ids that is not known here")
}

func id(to *forge.ULID) bits[forge.ULID]               { return bits[forge.ULID]{to} }
func hash(to *digest.Digest) bits[digest.Digest]       { return bits[digest.Digest]{to} }
func specID(to *forge.JobSpecID) bits[forge.JobSpecID] { return bits[forge.JobSpecID]{to} }
func num[T integer](to *T) number[T]                   { return number[T]{to} }
func doc(to any) document                              { return document{to} }

type integer interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64 | ~int
}

// number reads an integer; one with 64 bits unsigned is stored as the signed one of the same bits.
type number[T integer] struct{ to *T }

// Scan implements sql.Scanner.
func (n number[T]) Scan(src any) error {
	v, ok := src.(int64)
	if !ok {
		return fmt.Errorf("%w: %T for a number", errColumn, src)
	}
	*n.to = T(v)
	return nil
}

// flag reads a 0 or 1.
type flag struct{ to *bool }

// Scan implements sql.Scanner.
func (f flag) Scan(src any) error {
	v, ok := src.(int64)
	if !ok || v&^1 != 0 {
		return fmt.Errorf("%w: %v for a flag", errColumn, src)
	}
	*f.to = v == 1
	return nil
}

// document reads a value that is stored as JSON. No text is the zero value.
type document struct{ to any }

// Scan implements sql.Scanner.
func (d document) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("%w: %T for a document", errColumn, src)
	}
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), d.to); err != nil {
		return fmt.Errorf("%w: %w", errColumn, err)
	}
	return nil
}

// toText is the JSON of a value that has nothing in it which JSON cannot hold.
func toText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}

func toInt[T integer](v T) int64 { return int64(v) }

func toFlag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
