package forge_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B93: an amount without its unit is no amount.
func TestAmountsAreReadWithTheirUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "5": -1, "5 m": -1, "": -1} {
		if got, err := forge.ParseDuration(text); err == nil && got != want || err != nil && want != -1 {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]forge.Bytes{"512MiB": 512 * forge.MiB, "4 GiB": 4 * forge.GiB, "0": 0, "16777215TiB": 16777215 * forge.TiB} {
		if got, err := forge.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "4GB", "-1MiB", "1.5GiB", "16777216TiB", "GiB"} {
		if got, err := forge.ParseBytes(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	for text, want := range map[string]forge.MilliCPU{"2": 2000, "0.5": 500, "0.001": 1} {
		if got, err := forge.ParseCPU(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "0.0001", "1e3", "3.", "99999999999"} {
		if got, err := forge.ParseCPU(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
