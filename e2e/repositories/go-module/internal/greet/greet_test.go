package greet

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachIsGreetedByName(t *testing.T) {
	var got []string
	for _, name := range []string{"Ada", "Grace"} {
		line, err := Line(name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"Good day, Ada.", "Good day, Grace."}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyIsNotGreeted(t *testing.T) {
	if _, err := Line(""); !errors.Is(err, ErrNobody) {
		t.Errorf("err = %v", err)
	}
}
