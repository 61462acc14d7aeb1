package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// required are the rules that the design wants to see broken.
var required = strings.Fields(`
	ttl-replayed deadline-from-receipt expiry-by-wall-clock watch-goes-on watch-from-asking sweep-unconditional no-margins
	no-deadline-at-pid1 no-check-before-exec no-fence-completion no-fence-reject no-fence-resync no-fence-heartbeat
	no-lock-session no-lock-runner no-lock-job ack-not-awaited lease-taken-twice offer-sweep-ends-accepted
	refusal-drops-running stale-deletes-completion absence-means-lost dying-left-out-of-resync resync-old-body
	recovery-from-other-folder recovery-from-other-boot completion-inherited completion-without-seal completion-rebuilt
	duplicate-without-hash bitten-is-success cancelled-retried cancel-of-ready-ignored beyond-max-lifetime
	renewal-after-soft-signal start-counter-ignored late-registration-fences`)

func TestEveryMutantStillFitsTheSource(t *testing.T) {
	mutants, err := Mutants()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range mutants {
		if named[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		named[m.Name] = true
		sources := map[string]string{}
		for _, e := range m.Edits {
			source, ok := sources[e.File]
			if !ok {
				data, err := os.ReadFile(filepath.Join("..", "..", e.File))
				if err != nil {
					t.Fatal(err)
				}
				source = string(data)
			}
			edited, err := e.Apply(source)
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
				continue
			}
			sources[e.File] = edited
		}
	}
	own := len(named)
	for _, name := range required {
		if !named[name] {
			t.Errorf("no mutant %s", name)
		}
		own--
	}
	if own < 10 {
		t.Errorf("%d mutants of our own, at least 10 are wanted", own)
	}
}

func TestAMalformedMutantIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"- x":                       "mutants.txt:1: \"- x\" before the first mutant",
		"mutant a: b\n- x":          "mutants.txt:2: \"- x\" before the file",
		"mutant a":                  "mutants.txt:1: a mutant is written",
		"mutant a: b\nfile c\nnope": "mutants.txt:3: \"nope\" is neither",
	} {
		if _, err := parseMutants(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (Edit{File: "f", Old: "a\n"}).Apply("a\na\n"); err == nil {
		t.Error("text that occurs twice is replaced")
	}
}
