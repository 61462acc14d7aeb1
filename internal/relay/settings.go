package relay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxDelay bounds delays and jitter.
const MaxDelay = time.Minute

// overtaken is how long a datagram is held back so that those behind it overtake it.
const overtaken = 10 * time.Millisecond

// Settings are how bad the network is, the same in both directions. The zero value is a good one.
type Settings struct {
	Loss      float64       // share of datagrams that are lost, 0 to 1
	Duplicate float64       // that come twice
	Reorder   float64       // that are overtaken by those behind them
	Delay     time.Duration // of every datagram
	Jitter    time.Duration // at most, besides Delay
	Rate      int64         // bytes a second in each direction; 0: no limit
	MTU       int           // longest datagram that passes, in bytes; 0: any
}

// Validate reports what is out of range.
func (s Settings) Validate() error {
	for name, share := range map[string]float64{"loss": s.Loss, "duplicate": s.Duplicate, "reorder": s.Reorder} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("relay: %s is %v, not from 0 to 1", name, share)
		}
	}
	for name, d := range map[string]time.Duration{"delay": s.Delay, "jitter": s.Jitter} {
		if d < 0 || d > MaxDelay {
			return fmt.Errorf("relay: %s is %v, not from 0 to %v", name, d, MaxDelay)
		}
	}
	if s.Rate < 0 || s.MTU < 0 {
		return fmt.Errorf("relay: rate %d and mtu %d must not be negative", s.Rate, s.MTU)
	}
	return nil
}

// Names lists what With can change.
func Names() []string {
	return []string{"loss", "duplicate", "reorder", "delay", "jitter", "rate", "mtu"}
}

// With returns the settings with one changed, by its name and as text.
func (s Settings) With(name, value string) (Settings, error) {
	var err error
	switch name {
	case "loss":
		s.Loss, err = strconv.ParseFloat(value, 64)
	case "duplicate":
		s.Duplicate, err = strconv.ParseFloat(value, 64)
	case "reorder":
		s.Reorder, err = strconv.ParseFloat(value, 64)
	case "delay":
		s.Delay, err = time.ParseDuration(value)
	case "jitter":
		s.Jitter, err = time.ParseDuration(value)
	case "rate":
		s.Rate, err = strconv.ParseInt(value, 10, 64)
	case "mtu":
		s.MTU, err = strconv.Atoi(value)
	default:
		return s, fmt.Errorf("relay: no setting %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return s, fmt.Errorf("relay: %s: %q cannot be read", name, value)
	}
	return s, s.Validate()
}

// A Cut ends all traffic of some directions for a while.
type Cut struct {
	After time.Duration // since the start of Run
	For   time.Duration
	Ways  []Direction
}

// MaxCuts bounds a schedule.
const MaxCuts = 256

// ParseCuts reads a schedule such as "10s+5s,30s+2s:up": cuts of five and two seconds, the latter only upwards. It is
// ordered and its cuts do not overlap.
func ParseCuts(text string) ([]Cut, error) {
	var cuts []Cut
	if text == "" {
		return nil, nil
	}
	for i, part := range strings.Split(text, ",") {
		spans, way, _ := strings.Cut(part, ":")
		after, length, ok := strings.Cut(spans, "+")
		at, err := time.ParseDuration(after)
		span, err2 := time.ParseDuration(length)
		ways, err3 := ParseWays(way)
		if !ok || err != nil || err2 != nil || err3 != nil || at < 0 || span <= 0 {
			return nil, fmt.Errorf("relay: cut %q: write after+length, as in 10s+5s or 10s+5s:up", part)
		}
		if i == MaxCuts {
			return nil, fmt.Errorf("relay: more than %d cuts", MaxCuts)
		}
		cuts = append(cuts, Cut{After: at, For: span, Ways: ways})
	}
	if !slices.IsSortedFunc(cuts, func(a, b Cut) int { return cmp.Compare(a.After, b.After) }) {
		return nil, fmt.Errorf("relay: cuts %q are not in order", text)
	}
	for i := range cuts[1:] {
		if cuts[i].After+cuts[i].For > cuts[i+1].After {
			return nil, fmt.Errorf("relay: cuts %q overlap", text)
		}
	}
	return cuts, nil
}

// ParseWays reads "up", "down", or "both", which is also what nothing means.
func ParseWays(text string) ([]Direction, error) {
	switch text {
	case "up":
		return []Direction{Up}, nil
	case "down":
		return []Direction{Down}, nil
	case "both", "":
		return []Direction{Up, Down}, nil
	}
	return nil, fmt.Errorf("relay: no direction %q; use up, down or both", text)
}
