package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheDaemonsOfAnEnrolmentAreKnownAfterIt(t *testing.T) {
	state := t.TempDir()
	if known, err := NotedEndpoints(state); err != nil || len(known) != 0 {
		t.Fatalf("before any enrolment: %v, %v", known, err)
	}
	want := []string{"ci.example.org:7443", "[::1]:7443"}
	if err := noteEndpoints(state, want); err != nil {
		t.Fatal(err)
	}
	if known, err := NotedEndpoints(state); err != nil || !slices.Equal(known, want) {
		t.Errorf("known are %v (%v), want %v", known, err, want)
	}
}

func TestAFileOfEndpointsThatIsSpoiltIsNamed(t *testing.T) {
	for what, content := range map[string]string{"no port": "ci.example.org", "no host": ":7443", "too long": strings.Repeat("a:1\n", 2000)} {
		state := t.TempDir()
		path := filepath.Join(state, endpointsFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NotedEndpoints(state); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
