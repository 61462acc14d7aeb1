package inspect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/inspect"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestEverySampleHasATreeThatShowsNoSecret(t *testing.T) {
	secrets := 0
	for _, info := range protocol.Registry() {
		for _, s := range protocoltest.Samples(info.ID) {
			raw, err := s.Frame()
			if err != nil {
				t.Fatal(err)
			}
			node, err := inspect.Frame(raw)
			if err != nil {
				t.Fatal(err)
			}
			if node.Name != info.Name || !json.Valid(node.JSON()) {
				t.Errorf("%s/%s: %.200s", info.Name, s.Name, node.JSON())
			}
			all := node.Text() + string(node.JSON())
			secrets += strings.Count(all, "[secret]")
			for _, form := range []string{protocoltest.SecretSample, "hunter2", "68756e746572", "fye_not", "6679655f6e6f74"} {
				if strings.Contains(all, form) {
					t.Errorf("%s/%s shows a secret", info.Name, s.Name)
				}
			}
		}
	}
	if secrets != 8 {
		t.Errorf("%d placeholders, want two for each of the four samples with a secret", secrets)
	}
}

func TestATextOfAPeerCannotMoveTheCursor(t *testing.T) {
	n := inspect.Node{Name: "Software", Shape: inspect.Text, Value: "a\x1b[2J\r\nb\u0085c"}
	if got := n.Text(); strings.ContainsAny(got, "\x1b\r\u0085") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
}

func TestBytesOfObjectsAreCountedAndLeftOut(t *testing.T) {
	const content = "object bytes that are no frame"
	stream, err := protocol.AppendStreamHeader(nil, protocol.StreamCASUpload, &casv1.StreamHeaderV1{Attempt: [16]byte{1}, Lease: [16]byte{2}})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.EnvelopeV1{MessageID: [16]byte{1}}
	object := protocol.RefV1{Digest: [32]byte{1}, Bytes: uint64(len(content))}
	n := uint64(len(content))
	run := &casv1.CasHeaderV1{Object: object, Length: n, Encoding: casv1.EncodingPlain, Encoded: n}
	if stream, err = protocol.AppendFrame(stream, env, run); err != nil {
		t.Fatal(err)
	}
	stream = append(stream, content...)
	if stream, err = protocol.AppendFrame(stream, env, &casv1.CasResultV1{Object: object, Outcome: casv1.OutcomeStored}); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := inspect.Stream(bytes.NewReader(stream), func(n inspect.Node) { names = append(names, n.Name) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, ", "); got != "Stream, CasHeader, Object bytes, CasResult" {
		t.Error(got)
	}
}

func TestAMessageOnAForeignStreamIsFound(t *testing.T) {
	stream, err := protocol.AppendStreamHeader(nil, protocol.StreamControl, &protocol.ControlHeaderV1{})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := protocoltest.Samples(protocol.TypeSecretMaterial)[1].Frame()
	if err != nil {
		t.Fatal(err)
	}
	err = inspect.Stream(bytes.NewReader(append(stream, secret...)), func(inspect.Node) {})
	var e *inspect.Error
	if !errors.As(err, &e) || e.Offset != int64(len(stream)+len(secret)) || !strings.Contains(e.What, "may not travel on a Control stream") {
		t.Errorf("%v", err)
	}
}

// FuzzStream: no capture makes the inspector panic, and every error says what to do.
func FuzzStream(f *testing.F) {
	head, err := protocol.AppendStreamHeader(nil, protocol.StreamControl, &protocol.ControlHeaderV1{})
	if err != nil {
		f.Fatal(err)
	}
	for _, info := range protocol.Registry() {
		frame, err := protocoltest.Samples(info.ID)[1].Frame()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(bytes.Clone(head), frame...))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		err := inspect.Stream(bytes.NewReader(stream), func(n inspect.Node) { _ = n.Text() })
		var e *inspect.Error
		if err != nil && (!errors.As(err, &e) || e.Do == "" || e.Offset > int64(len(stream))) {
			t.Errorf("%v", err)
		}
	})
}
