package forge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestALogFrameHoldsAtItsBoundsAndNotBeyond(t *testing.T) {
	good := forge.LogFrame{Seq: 1, Stream: forge.LogStdout, Bytes: []byte{0}}
	for _, test := range []struct {
		want  []string
		spoil func(*forge.LogFrame)
	}{
		{nil, func(*forge.LogFrame) {}},
		{nil, func(f *forge.LogFrame) { f.Bytes = make([]byte, forge.MaxLogPayload) }},
		{nil, func(f *forge.LogFrame) { f.Stream = forge.LogStructured }},
		{[]string{"seq"}, func(f *forge.LogFrame) { f.Seq = 0 }},
		{[]string{"stream"}, func(f *forge.LogFrame) { f.Stream = 0 }},
		{[]string{"stream"}, func(f *forge.LogFrame) { f.Stream = 5 }},
		{[]string{"bytes"}, func(f *forge.LogFrame) { f.Bytes = nil }},
		{[]string{"bytes"}, func(f *forge.LogFrame) { f.Bytes = make([]byte, forge.MaxLogPayload+1) }},
	} {
		f := good
		test.spoil(&f)
		if diff := cmp.Diff(test.want, paths(t, f.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}

func TestStepEventsHoldAtTheirBoundsAndNotBeyond(t *testing.T) {
	longest := strings.Repeat("x", forge.MaxNotice)
	for _, test := range []struct {
		want  []string
		event forge.StepEvent
	}{
		{nil, forge.StepStarted{Step: forge.MaxSteps - 1}},
		{[]string{"step"}, forge.StepStarted{Step: forge.MaxSteps}},
		{nil, forge.StepFinished{Result: forge.StepResult{Class: forge.Succeeded}}},
		{[]string{"step"}, forge.StepFinished{Result: forge.StepResult{Index: forge.MaxSteps, Class: forge.Succeeded}}},
		{nil, forge.Annotation{Level: forge.LevelError, File: "a b.go", Line: 3, Text: "line\nline"}},
		{nil, forge.Annotation{Level: forge.LevelNotice, Text: longest}},
		{[]string{"level"}, forge.Annotation{Text: "x"}},
		{[]string{"text"}, forge.Annotation{Level: forge.LevelNotice}},
		{[]string{"text"}, forge.Annotation{Level: forge.LevelNotice, Text: longest + "x"}},
		{[]string{"file"}, forge.Annotation{Level: forge.LevelNotice, Text: "x", File: "a\x00"}},
		{nil, forge.Gap{Bytes: 1}},
		{[]string{"bytes"}, forge.Gap{}},
		{nil, forge.Notice{Level: forge.LevelWarning, Text: longest}},
		{[]string{"level"}, forge.Notice{Level: 4, Text: "x"}},
		{[]string{"text"}, forge.Notice{Level: forge.LevelWarning, Text: longest + "x"}},
	} {
		if diff := cmp.Diff(test.want, paths(t, test.event.Validate())); diff != "" {
			t.Errorf("%T: %s", test.event, diff)
		}
	}
	if (forge.StepFinished{}).Validate() == nil {
		t.Error("a step that ended without a class is valid")
	}
}

func TestEveryWordIsReadBackAndNoOther(t *testing.T) {
	checkWords(t, forge.ParseWhen, "success", "failure", "always", "never")
	checkWords(t, forge.ParseNetwork, "none", "host")
	checkWords(t, forge.ParseInputMode, "ro", "cow")
	checkWords(t, forge.ParseSandboxKind, "native", "oci", "process")
	checkWords(t, forge.ParseTrustClass, "untrusted", "trusted", "protected")
	checkWords(t, forge.ParseConnectivity, "continuous", "grace", "offline")
	checkWords(t, forge.ParseLogStream, "stdout", "stderr", "agent", "structured")
	for i, s := range []string{"exit", "signal", "timeout", "oom"} {
		if w, err := forge.ParseRetryWord(s); err != nil || w != forge.RetryExit+forge.RetryWord(i) {
			t.Errorf("%s: %v, %v", s, w, err)
		}
	}
	if w, err := forge.ParseRetryWord("infra"); err == nil {
		t.Errorf("an author may list infra: %v", w)
	}
}

// checkWords checks that the words are numbered from 1 in this order.
func checkWords[T interface {
	~uint8
	String() string
}](t *testing.T, parse func(string) (T, error), words ...string,
) {
	t.Helper()
	for i, w := range words {
		got, err := parse(w)
		if err != nil || got != T(i+1) || got.String() != w {
			t.Errorf("%s is read as %d, %v", w, got, err)
		}
	}
	for _, bad := range []string{"", "Success", " none", "0", strings.Repeat("x", 1<<20)} {
		if got, err := parse(bad); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.20q is read as %d", bad, got)
		}
	}
}
