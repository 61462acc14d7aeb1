package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// TestRequestsWithoutTheTokenAreWrittenDownUpToABound: somebody who guesses is seen, by whence and for what, and cannot fill
// the disk. What was shown instead of the token is written nowhere.
func TestRequestsWithoutTheTokenAreWrittenDownUpToABound(t *testing.T) {
	w := newWorld(t)
	for range deniedPerWindow + 5 {
		w.ask("GET", api.Base+"/runs/a%0Ab", "", "", "Authorization", "Bearer guess")
	}
	audit, err := w.client.Audit(w.ctx, api.Page{})
	w.must(err)
	n := 0
	for _, e := range audit.Items {
		if e.Action != auditDenied {
			continue
		}
		n++
		if !strings.HasPrefix(e.Target, "127.0.0.1:") || e.Detail != "GET /api/v1/runs/a%0Ab" || strings.Contains(e.Detail+e.Target, "guess") {
			t.Errorf("written down: %+v", e)
		}
	}
	if n != deniedPerWindow {
		t.Errorf("%d are written down, want %d", n, deniedPerWindow)
	}
}

func TestTheBoundOnWhatIsWrittenDownIsThatOfAWindow(t *testing.T) {
	var d denials
	now := time.Now()
	for i := range 3 * deniedPerWindow {
		write, last := d.note(now)
		if write != (i < deniedPerWindow) || last != (i == deniedPerWindow-1) {
			t.Fatalf("request %d: %t, %t", i, write, last)
		}
	}
	if write, _ := d.note(now.Add(deniedWindow)); !write {
		t.Error("the next window begins with nothing")
	}
	if write, _ := d.note(now); !write {
		t.Error("a clock that was set back keeps it shut")
	}
}
