package console_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/program"
)

func TestAResultIsATableOrJSON(t *testing.T) {
	var out bytes.Buffer
	p := console.Printer{Out: &out}
	table := func(w io.Writer) {
		console.Row(w, "NAME", "STATE")
		console.Row(w, "a\x1b[2Jlong name", "")
		console.Field(w, "Only", "what\nthere is")
		console.Field(w, "Nothing", "")
	}
	if err := p.Show(map[string]string{"name": "<a>"}, table); err != nil {
		t.Fatal(err)
	}
	if want := "NAME             STATE\na [2Jlong name   -\nOnly:            what there is\n"; out.String() != want && !strings.Contains(out.String(), "a [2Jlong name") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	p.JSON = true
	if err := p.Show(map[string]string{"name": "<a>"}, table); err != nil || out.String() != "{\n  \"name\": \"<a>\"\n}\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestRemarksStandBesideTheResult(t *testing.T) {
	var out, remarks bytes.Buffer
	console.Printer{Out: &out, Err: &remarks}.Note("evil \x1b]0;x\x07 %d", 1)
	if out.Len() > 0 || remarks.String() != "evil  ]0;x  1\n" {
		t.Errorf("%q, %q", out.String(), remarks.String())
	}
}

func TestWrongUsageSaysWhereToReadOn(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lst"}, "Did you mean: tool list"},
		{[]string{"list", "more"}, "See: tool list --help"},
		{[]string{"list", "--nonsense"}, "See: tool list --help"},
	} {
		root := console.Group("tool", "A tool", &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }})
		console.Strict(root)
		root.SetArgs(c.args)
		err := root.Execute()
		var exit *program.ExitError
		if !errors.As(err, &exit) || exit.Code != program.CodeUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}
