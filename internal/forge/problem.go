package forge

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a value.
type Problem struct {
	Path string // where, as in steps[3].env[2].name; empty for the value itself
	What string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.What
	}
	return p.Path + ": " + p.What
}

// Problems is everything that is wrong with a value, so that its author can mend it in one go. As an error it is of the
// kind ErrInvalid. It never repeats more than a short piece of the value and holds at most maxProblems.
type Problems []Problem

const maxProblems = 64

func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, one := range p {
		texts[i] = one.String()
	}
	return ErrInvalid.Error() + ": " + strings.Join(texts, "; ")
}

// Is makes errors.Is(p, ErrInvalid) true.
func (p Problems) Is(target error) bool { return target == ErrInvalid }

// where is a place in a value: a field of the place above, or an item of such a field. Nil is the value itself. It is
// spelled out only when a problem is found there.
type where struct {
	up    *where
	field string
	index int // -1 where the field is meant
}

func (w *where) in(field string) *where { return &where{w, field, -1} }

func (w *where) item(field string, index int) *where { return &where{w, field, index} }

func (w *where) String() string {
	if w == nil {
		return ""
	}
	text := w.field
	if w.index >= 0 {
		text += "[" + strconv.Itoa(w.index) + "]"
	}
	if above := w.up.String(); above != "" {
		return above + "." + text
	}
	return text
}

// checker collects problems.
type checker struct{ found Problems }

// err returns what was found as an error, or nil.
func (c *checker) err() error {
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

func (c *checker) add(at *where, format string, args ...any) {
	switch {
	case len(c.found) < maxProblems-1:
		c.found = append(c.found, Problem{at.String(), fmt.Sprintf(format, args...)})
	case len(c.found) < maxProblems:
		c.found = append(c.found, Problem{What: "there are more problems than are listed here"})
	}
}

// count checks the length of a list and reports whether its items are worth a look.
func (c *checker) count(at *where, n, most int) bool {
	if n > most {
		c.add(at, "has %d items, at most %d", n, most)
	}
	return n <= most
}

// known checks that an enumerated value is one of its constants.
func (c *checker) known(at *where, valid bool, value any) {
	if !valid {
		c.add(at, "%v is not known", value)
	}
}

// number checks that a number is within its bounds.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *checker, at *where, n, least, most T) {
	if n < least || n > most {
		c.add(at, "%v is not within %v and %v", n, least, most)
	}
}

// unique checks that no two items have the same key. Items with the zero key are free.
func unique[T any, K comparable](c *checker, up *where, field string, items []T, key func(T) K) {
	var none K
	first := make(map[K]int, len(items))
	for i, item := range items {
		k := key(item)
		if k == none {
			continue
		}
		if j, dup := first[k]; dup {
			c.add(up.item(field, i), "repeats %s[%d]", field, j)
			continue
		}
		first[k] = i
	}
}
