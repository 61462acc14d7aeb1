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
		{[]string{"list", "more"}, "list takes no arguments, and was given one word\nSee: tool list --help"},
		{[]string{"show"}, "show takes NAME, and was given nothing\nSee: tool show --help"},
		{[]string{"show", "a", "b", "c", "d", "e"}, "show takes NAME, and was given 5 words\nSee: tool show --help"},
		{[]string{"pick", "c"}, "invalid argument \"c\" for \"tool pick\""},
		{[]string{"pick"}, "pick takes WORD, and was given nothing\nSee: tool pick --help"},
		{[]string{"list", "--nonsense"}, "See: tool list --help"},
	} {
		nothing := func(*cobra.Command, []string) error { return nil }
		root := console.Group("tool", "A tool",
			&cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: nothing},
			&cobra.Command{Use: "show NAME --as FORM", Args: cobra.ExactArgs(1), RunE: nothing},
			&cobra.Command{Use: "pick WORD", Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"a", "b"}, RunE: nothing})
		console.Strict(root)
		root.SetArgs(c.args)
		err := root.Execute()
		var exit *program.ExitError
		if !errors.As(err, &exit) || exit.Code != program.CodeUsage || !strings.Contains("\n"+err.Error(), "\n"+c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}
