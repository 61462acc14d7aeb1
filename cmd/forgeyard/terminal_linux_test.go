package main

import (
	"strings"
	"testing"
)

// Case B60: whoever starts a run at a terminal does not lend it to the job. The job sees no terminal by any of its three files nor by
// name, reads the end of its input at once, and gets nothing of what is typed.
func TestAJobHasNoTerminalAndNothingToRead(t *testing.T) {
	t.Parallel()
	s := sit(t, "run", "-c", `tty || true
		for f in 0 1 2; do if [ -t $f ]; then echo "file $f is a terminal"; fi; done
		if (: </dev/tty) 2>/dev/null; then echo "the terminal opens by name"; fi
		if read -r line; then echo "read $line"; else echo "nothing is there to read"; fi`)
	if err := s.Type("hunter2\r"); err != nil { // a command that asks nothing leaves it where it is
		t.Error(err)
	}
	all := s.ends(0)
	for _, want := range []string{"not a tty", "nothing is there to read"} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody saw %q in:\n%s", want, all)
		}
	}
	for _, never := range []string{"is a terminal", "opens by name", "read hunter2"} {
		if strings.Contains(all, never) {
			t.Errorf("the job has what it must not, %q:\n%s", never, all)
		}
	}
}
