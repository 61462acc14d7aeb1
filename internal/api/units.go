package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Duration is a time span, written as "1h30m", "10s" or "250ms".
type Duration time.Duration

// String writes the shortest form that reads back as the same.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes and whatever else time.ParseDuration does. A number without a unit is refused,
// but for 0, which is the same in all of them.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := forge.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Size is an amount of bytes, written as "4GiB" or "512MiB", or as a plain number of bytes.
type Size uint64

// String writes the size in the largest unit that divides it.
func (s Size) String() string { return strings.ReplaceAll(forge.Bytes(s).String(), " ", "") }

// MarshalText writes what String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a whole number with or without a unit of 1024.
func (s *Size) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		*s = Size(n)
		return nil
	}
	v, err := forge.ParseBytes(string(text))
	*s = Size(v)
	return err
}

// Cores is an amount of processor, written as a number of cores with at most three decimals.
type Cores forge.MilliCPU

// MarshalJSON writes a number.
func (c Cores) MarshalJSON() ([]byte, error) { return []byte(forge.MilliCPU(c).String()), nil }

// UnmarshalJSON reads a number.
func (c *Cores) UnmarshalJSON(data []byte) error { return c.UnmarshalText(data) }

// UnmarshalText reads a number of cores.
func (c *Cores) UnmarshalText(text []byte) error {
	v, err := forge.ParseCPU(string(text))
	*c = Cores(v)
	return err
}

// Time is a moment of the wall clock, for people. The zero value means that it has not come.
type Time = time.Time

// TimeOf turns a wall clock reading into a Time; zero stays zero.
func TimeOf(w forge.WallTime) *Time {
	if w == 0 {
		return nil
	}
	t := time.UnixMilli(int64(w)).UTC()
	return &t
}

// clip keeps an error message bounded whatever the input was.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// numeric is implemented by units that may also be written as a JSON number.
type numeric interface{ fromNumber(json.Number) error }

func (s *Size) fromNumber(n json.Number) error  { return s.UnmarshalText([]byte(n)) }
func (c *Cores) fromNumber(n json.Number) error { return c.UnmarshalText([]byte(n)) }
