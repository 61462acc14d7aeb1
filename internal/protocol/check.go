package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrInvalid is the kind of every error of a Validate in this package and in those of the families.
var ErrInvalid = errors.New("invalid")

// MaxDuration bounds every duration on the wire. Only offline leases and the longest life of a lease come near.
const MaxDuration = 400 * 24 * time.Hour

// MaxWall bounds every wall clock reading on the wire: the end of the year 9999, in milliseconds since 1970.
const MaxWall int64 = 253_402_300_799_999

// Check collects what is wrong with a wire struct and keeps the first of it. Its texts name fields, never values.
type Check struct{ err error }

// Err returns what was found, or nil.
func (c *Check) Err() error { return c.err }

// That notes a problem with a field unless ok.
func (c *Check) That(ok bool, field, problem string) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%w: %s: %s", ErrInvalid, field, problem)
	}
}

// ID checks that an id is there.
func (c *Check) ID(field string, id [16]byte) { c.That(id != [16]byte{}, field, "is missing") }

// Digest checks that a digest is there.
func (c *Check) Digest(field string, d [32]byte) { c.That(d != [32]byte{}, field, "is missing") }

// Count checks the number of items or bytes.
func (c *Check) Count(field string, n, least, most int) {
	c.That(least <= n && n <= most, field, "does not have "+strconv.Itoa(least)+" to "+strconv.Itoa(most)+" of them")
}

// Duration checks nanoseconds against a lower bound and MaxDuration.
func (c *Check) Duration(field string, nanos uint64, least time.Duration) {
	c.That(nanos >= uint64(least) && nanos <= uint64(MaxDuration), field, "is out of range")
}

// Wall checks a wall clock reading in milliseconds.
func (c *Check) Wall(field string, ms int64) {
	c.That(0 <= ms && ms <= MaxWall, field, "is out of range")
}

// Line checks a text for people: one line without control characters, of at most most bytes.
func (c *Check) Line(field, text string, most int) {
	good := len(text) <= most && utf8.ValidString(text)
	for _, r := range text {
		good = good && !unicode.IsControl(r)
	}
	c.That(good, field, "is not one line of at most "+strconv.Itoa(most)+" bytes")
}

// In takes over what was found inside a field.
func (c *Check) In(field string, err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%w: %s: %w", ErrInvalid, field, err)
	}
}

// Item takes over what was found inside an item of a list.
func (c *Check) Item(field string, i int, err error) {
	if err != nil {
		c.In(field+"["+strconv.Itoa(i)+"]", err)
	}
}

// Nanos is how durations travel. A negative one becomes one that no Validate accepts.
func Nanos(d time.Duration) uint64 { return uint64(d) }

// Duration is Nanos back; its argument must have been checked.
func Duration(nanos uint64) time.Duration { return time.Duration(min(nanos, uint64(MaxDuration))) }
