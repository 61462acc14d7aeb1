package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestMissingObjects(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.MissingObjectsV1){
		"with an object without a digest": func(w *casv1.MissingObjectsV1) { w.Objects[0].Digest = [32]byte{} },
	})
}

func TestTheAnswerNamesOnlyWhatWasAsked(t *testing.T) {
	a, b, c := protocol.RefV1{Digest: [32]byte{1}}, protocol.RefV1{Digest: [32]byte{2}}, protocol.RefV1{Digest: [32]byte{3}}
	question := &casv1.NeedObjectsV1{Objects: []protocol.RefV1{a, b, a}}
	for _, test := range []struct {
		answer []protocol.RefV1
		want   bool
	}{
		{nil, true},
		{[]protocol.RefV1{a}, true},
		{[]protocol.RefV1{a, b, a}, true},
		{[]protocol.RefV1{b, a}, true},
		{[]protocol.RefV1{b, b}, false},
		{[]protocol.RefV1{a, a, b}, false},
		{[]protocol.RefV1{c}, false},
	} {
		if got := (&casv1.MissingObjectsV1{Objects: test.answer}).Answers(question); got != test.want {
			t.Errorf("%v: %v", test.answer, got)
		}
	}
}

func FuzzMissingObjects(f *testing.F) { protocoltest.Fuzz[*casv1.MissingObjectsV1](f) }
