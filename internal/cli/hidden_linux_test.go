package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

// terminalPair returns both ends of a new terminal: what a person types into and sees, and what the program has.
func terminalPair(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, program, err := emulator.Pair(80, 24)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { _, _ = person.Close(), program.Close() })
	return person, program
}

func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGet)
	if err != nil {
		t.Fatal(err)
	}
	return settings.Lflag&unix.ECHO != 0
}

// prompted is where a question appears; what was asked is answered then.
type prompted struct {
	bytes.Buffer
	answer func()
}

func (p *prompted) Write(b []byte) (int, error) {
	if p.Len() == 0 {
		p.answer()
	}
	return p.Buffer.Write(b)
}

func TestAValueThatIsTypedIsNotShown(t *testing.T) {
	person, program := terminalPair(t)
	if !isTerminal(program) || !echoes(t, program) {
		t.Fatal("that is no terminal, or none that shows what is typed")
	}
	out := &prompted{answer: func() {
		if echoes(t, program) {
			t.Error("what is typed is shown")
		}
		if _, err := person.WriteString("hunter2\r"); err != nil {
			t.Error(err)
		}
	}}
	line, err := askHidden(t.Context(), program, out, "Value: ")
	if err != nil || string(oneLine(line)) != "hunter2" {
		t.Errorf("got %q, %v", line, err)
	}
	if out.String() != "Value: \n" || !echoes(t, program) {
		t.Errorf("it said %q, and shows what is typed then: %v", out.String(), echoes(t, program))
	}
	shown, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, shown)
	if shown > 0 {
		if _, err := person.Read(text); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(text, []byte("hunter")) {
		t.Errorf("the terminal shows %q", text)
	}
}

func TestAnInterruptedQuestionLeavesTheTerminalAsItWas(t *testing.T) {
	_, program := terminalPair(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("Ctrl-C")
	_, err := askHidden(ctx, program, &prompted{answer: func() { cancel(stopped) }}, "Value: ")
	if !errors.Is(err, stopped) || !echoes(t, program) {
		t.Errorf("got %v, and what is typed is shown: %v", err, echoes(t, program))
	}
}

func TestOnlyTheEndOfASingleLineIsLeftOut(t *testing.T) {
	for text, want := range map[string]string{
		"a\n": "a", "a\r\n": "a", "a": "a", "": "", "\n": "", "a\n\n": "a\n\n", "a\nb\n": "a\nb\n", "a\nb": "a\nb", " a ": " a ",
	} {
		if got := oneLine([]byte(text)); string(got) != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
