package postcard

import (
	"reflect"
	"strconv"
	"strings"
)

// A tag is a list of clauses with commas between:
//
//	max=N    at most N items, or bytes of a string or byte slice
//	elem=N   the same for what stands inside: items of a list, values of a map; again for what
//	         stands inside of that
//	key=N    the same for a map's keys
//	=N       the field is a variant of an enum; N is its discriminant
//
// Arrays, pointers and the variants of enums are transparent: the limit is that of what they hold.
type tag struct {
	limits       []uint64 // max, then each elem
	key          []uint64
	discriminant uint32
	isVariant    bool
}

func parseTag(f reflect.StructField) (tag, error) {
	var t tag
	text, given := f.Tag.Lookup("postcard")
	if !given {
		return t, nil
	}
	for clause := range strings.SplitSeq(text, ",") {
		name, number, ok := strings.Cut(clause, "=")
		n, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil || !t.set(name, n) {
			return t, refuse(ErrTag, strconv.Quote(clause))
		}
	}
	return t, nil
}

// set takes one clause; max comes once and before elem, the others at most once.
func (t *tag) set(name string, n uint64) bool {
	switch {
	case name == "max" && len(t.limits) == 0, name == "elem" && len(t.limits) > 0:
		t.limits = append(t.limits, n)
	case name == "key" && len(t.key) == 0:
		t.key = append(t.key, n)
	case name == "" && !t.isVariant:
		t.discriminant, t.isVariant = uint32(n), true
	default:
		return false
	}
	return true
}

// next takes the limit of the next list, string or map on the way in.
func (t *tag) next() (uint64, error) {
	if len(t.limits) == 0 {
		return 0, refuse(ErrNoLimit, "")
	}
	limit := t.limits[0]
	t.limits = t.limits[1:]
	return limit, nil
}

// used refuses a clause that nothing needed: it is a mistake about the field's type.
func (t *tag) used() error {
	if len(t.limits) > 0 || len(t.key) > 0 {
		return refuse(ErrTag, "a limit for something the type does not have")
	}
	return nil
}
