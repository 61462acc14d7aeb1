package forge

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a time span with its units, as in 90s, 20m or 1h30m. 0 needs none.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf(`%q is no duration; write it with a unit, as in "90s", "20m" or "1h30m"`, clip(text))
	}
	return d, nil
}

var sizeUnits = []struct {
	suffix string
	bytes  Bytes
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// ParseBytes reads a whole number with a unit of 1024, as in 512MiB or 4 GiB. 0 needs none.
func ParseBytes(text string) (Bytes, error) {
	digits, unit := text, Bytes(0)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || unit == 0 && n != 0 || unit != 0 && n > math.MaxUint64/uint64(unit) {
		return 0, fmt.Errorf(`%q is no size; write it with a unit, as in "512MiB" or "8GiB"`, clip(text))
	}
	return Bytes(n) * unit, nil
}

// ParseCPU reads a number of cores with at most three decimals, as in 2 or 0.5.
func ParseCPU(text string) (MilliCPU, error) {
	whole, part, dot := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 32)
	milli, err2 := strconv.ParseUint((part + "000")[:3], 10, 16)
	if err != nil || err2 != nil || len(part) > 3 || dot && part == "" {
		return 0, fmt.Errorf("%q is no number of cores; write it as 2 or 0.5", clip(text))
	}
	return MilliCPU(n*1000 + milli), nil
}
