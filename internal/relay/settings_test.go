package relay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsAreChangedByName(t *testing.T) {
	var s Settings
	for name, value := range map[string]string{
		"loss": "0.5", "duplicate": "0.25", "reorder": "1", "delay": "20ms", "jitter": "5ms", "rate": "1000", "mtu": "1280",
	} {
		next, err := s.With(name, value)
		if err != nil {
			t.Fatal(err)
		}
		s = next
	}
	want := Settings{Loss: 0.5, Duplicate: 0.25, Reorder: 1, Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Rate: 1000, MTU: 1280}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][2]string{{"loss", "1.1"}, {"loss", "-1"}, {"loss", "NaN"}, {"delay", "2m"}, {"rate", "-1"}, {"mtu", "x"}, {"speed", "1"}} {
		if _, err := s.With(bad[0], bad[1]); err == nil {
			t.Errorf("%s=%s was taken", bad[0], bad[1])
		}
	}
}

func TestSchedulesOfCuts(t *testing.T) {
	got, err := ParseCuts("1s+500ms,10s+5s:up,15s+1s:down")
	if err != nil {
		t.Fatal(err)
	}
	want := []Cut{
		{After: time.Second, For: 500 * time.Millisecond, Ways: []Direction{Up, Down}},
		{After: 10 * time.Second, For: 5 * time.Second, Ways: []Direction{Up}},
		{After: 15 * time.Second, For: time.Second, Ways: []Direction{Down}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"10s", "10s+0s", "x+1s", "1s+x", "-1s+1s", "1s+1s:left", "5s+1s,1s+1s", "1s+5s,2s+1s", ","} {
		if _, err := ParseCuts(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if got, err := ParseCuts(""); err != nil || got != nil {
		t.Errorf("no cuts: %v, %v", got, err)
	}
}
