package native_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// shapes is a digest of the messages of this Revision.
const shapes = "18a9a9f3928b5b27"

// An agent tells a program of another release by the Revision alone.
func TestTheRevisionChangesWithTheMessages(t *testing.T) {
	var text strings.Builder
	for _, message := range []any{sandbox.Request{}, sandbox.Answer{}, keeper.Request{}, keeper.Report{}} {
		describe(&text, reflect.TypeOf(message), map[reflect.Type]bool{})
	}
	sum := sha256.Sum256([]byte(text.String()))
	if got := hex.EncodeToString(sum[:8]); got != shapes {
		t.Errorf("the messages have changed: add one to sandbox.Revision (%d), and write %s here", sandbox.Revision, got)
	}
}

// describe writes down what package json makes of a type.
func describe(text *strings.Builder, what reflect.Type, seen map[reflect.Type]bool) {
	_, _ = fmt.Fprintf(text, "%s ", what.Kind())
	if seen[what] {
		return
	}
	seen[what] = true
	switch what.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(text, what.Elem(), seen)
	case reflect.Map:
		describe(text, what.Key(), seen)
		describe(text, what.Elem(), seen)
	case reflect.Struct:
		for field := range what.Fields() {
			_, _ = fmt.Fprintf(text, "%s %s:", field.Name, field.Tag)
			describe(text, field.Type, seen)
		}
		text.WriteString("; ")
	default:
	}
}
