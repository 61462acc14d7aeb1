package protocol

import (
	"cmp"
	"strconv"
	"strings"
)

// Version is a version of the protocol (09§23). Another major breaks; a higher minor of the same major only adds.
type Version struct {
	Major uint16
	Minor uint16
}

// Current is the newest version that this build speaks. Until the first release it is 0.1, which nobody has to keep.
var Current = Version{Major: 0, Minor: 1}

// String writes 0.1.
func (v Version) String() string {
	return strconv.Itoa(int(v.Major)) + "." + strconv.Itoa(int(v.Minor))
}

// Compare orders versions.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor))
}

// MaxRanges bounds the majors that one peer may speak.
const MaxRanges = 8

// Range is what a peer speaks of one major: every minor from MinMinor to MaxMinor (09§24). A range over several majors
// could not say which minor of an older major is the last one known, so there is one for each.
type Range struct {
	Major    uint16
	MinMinor uint16
	MaxMinor uint16
}

func (r Range) String() string {
	low, high := Version{r.Major, r.MinMinor}, Version{r.Major, r.MaxMinor}
	if low == high {
		return low.String()
	}
	return low.String() + "-" + high.String()
}

// Ranges is everything that a peer speaks, ascending by major.
type Ranges []Range

// Supported is what this build speaks.
func Supported() Ranges {
	return Ranges{{Major: Current.Major, MinMinor: Current.Minor, MaxMinor: Current.Minor}}
}

// Validate checks that there are 1 to MaxRanges majors, ascending, each with minors.
func (r Ranges) Validate() error {
	var c Check
	c.Count("versions", len(r), 1, MaxRanges)
	for i, one := range r {
		c.That(one.MinMinor <= one.MaxMinor, "versions", "minors run backward")
		c.That(i == 0 || r[i-1].Major < one.Major, "versions", "majors do not ascend")
	}
	return c.Err()
}

// Highest returns the newest version in r, which must be valid.
func (r Ranges) Highest() Version {
	last := r[len(r)-1]
	return Version{last.Major, last.MaxMinor}
}

// Contains reports whether v is one of the versions.
func (r Ranges) Contains(v Version) bool {
	one, ok := r.major(v.Major)
	return ok && one.MinMinor <= v.Minor && v.Minor <= one.MaxMinor
}

func (r Ranges) major(major uint16) (Range, bool) {
	for _, one := range r {
		if one.Major == major {
			return one, true
		}
	}
	return Range{}, false
}

// Majors writes the majors alone, as in 3-4 or 1,3-4.
func (r Ranges) Majors() string {
	var parts []string
	for i := 0; i < len(r); {
		first, last := i, i
		for last+1 < len(r) && r[last+1].Major == r[last].Major+1 {
			last++
		}
		text := strconv.Itoa(int(r[first].Major))
		if last > first {
			text += "-" + strconv.Itoa(int(r[last].Major))
		}
		parts = append(parts, text)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// String writes majors and minors, as in 1.2-1.5,2.0.
func (r Ranges) String() string {
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = one.String()
	}
	return strings.Join(parts, ",")
}
