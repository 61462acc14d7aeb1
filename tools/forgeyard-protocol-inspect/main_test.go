package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/inspect"
)

const root = "../.."

// build makes the command as its users have it.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "forgeyard-protocol-inspect")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func TestTheBuiltCommandDecodesEveryCommittedVector(t *testing.T) {
	binary := build(t)
	files, err := filepath.Glob(filepath.Join(root, "protocols", "vectors", "*", "*.json"))
	if err != nil || len(files) < len(protocol.Registry()) {
		t.Fatalf("%d files of vectors, %v", len(files), err)
	}
	for _, file := range files {
		for _, args := range [][]string{{"vector", file}, {"-json", "vector", file}} {
			out, err := exec.Command(binary, args...).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %v: %s", args, err, out)
				continue
			}
			checkShown(t, file, string(out), args[0] == "-json")
		}
	}
}

// checkShown: every vector of the file is there.
func checkShown(t *testing.T, file, out string, isJSON bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := inspect.ParseVectors(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Vectors {
		if !strings.Contains(out, v.ID+" ") {
			t.Errorf("%s is not shown", v.ID)
		}
	}
	if !isJSON {
		return
	}
	for line := range strings.Lines(out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%s: no JSON: %.200s", file, line)
		}
	}
}

// invoke runs the command inside this process.
func invoke(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func cancelFrame(t *testing.T) []byte {
	t.Helper()
	env := protocol.EnvelopeV1{Protocol: protocol.Current, MessageID: [16]byte{1}}
	raw, err := protocol.AppendFrame(nil, env, &agentv1.CancelV1{Attempt: [16]byte{2}, Lease: [16]byte{3}, Reason: 1})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAFrameIsShownAsNamesAndValues(t *testing.T) {
	const want = `Cancel
  Type: 0210
  Schema: 1
  Bytes: 54
  Envelope
    Protocol
      Major: 0
      Minor: 1
    MessageID: 01000000000000000000000000
    CorrelationID: none
    SentAt: 0
    Trace: none
  Payload
    Attempt: 02000000000000000000000000
    Lease: 03000000000000000000000000
    Reason: User (1)
`
	frame := hex.EncodeToString(cancelFrame(t))
	for _, test := range [][]string{
		{"", "frame", frame},
		{"", "frame", frame[:20] + " \n" + frame[20:]},
		{frame + "\n", "frame", "-"},
		{"", "body", "0210", frame[16:]},
		{"", "body", "0210.1", frame[16:]},
	} {
		if code, out, errs := invoke(t, test[0], test[1:]...); code != exitDecoded || out != want || errs != "" {
			t.Errorf("%v: exit %d\n%s%s", test[1:], code, out, errs)
		}
	}
}

func TestACapturedStreamIsShownFrameByFrame(t *testing.T) {
	capture, err := protocol.AppendStreamHeader(nil, protocol.StreamControl, &protocol.ControlHeaderV1{})
	if err != nil {
		t.Fatal(err)
	}
	capture = append(append(capture, cancelFrame(t)...), cancelFrame(t)...)
	name := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(name, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := invoke(t, "", "stream", name)
	if code != exitDecoded || strings.Count(out, "Cancel\n") != 2 || !strings.HasPrefix(out, "Stream\n  Kind: Control\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = invoke(t, string(capture[:len(capture)-1]), "stream", "-")
	if code != exitInput || strings.Count(out, "Cancel\n") != 1 || !strings.Contains(errs, "at byte 70: ") {
		t.Errorf("cut short: exit %d\n%s%s", code, out, errs)
	}
}

func TestBadInputGetsWhatWhereAndWhatToDo(t *testing.T) {
	frame := cancelFrame(t)
	spoiled := bytes.Clone(frame)
	spoiled[len(spoiled)-1] = 0 // the reason
	option := bytes.Clone(frame)
	option[8+2+16] = 2 // the tag of the correlation id
	large := bytes.Clone(frame)
	large[1] = 1
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no hex":         {[]string{"frame", "00zz"}, exitInput, []string{"at digit 2", "two digits for each byte"}},
		"odd hex":        {[]string{"frame", "000"}, exitInput, []string{"odd number"}},
		"nothing":        {[]string{"frame", ""}, exitInput, []string{"no frame"}},
		"half a header":  {[]string{"frame", "000000"}, exitInput, []string{"at byte 0", "ends within a frame", "whole frame"}},
		"half a body":    {[]string{"frame", hex.EncodeToString(frame[:20])}, exitInput, []string{"ends within a frame"}},
		"more":           {[]string{"frame", hex.EncodeToString(append(bytes.Clone(frame), 9))}, exitInput, []string{"at byte 62", "bytes behind"}},
		"too large":      {[]string{"frame", hex.EncodeToString(large)}, exitInput, []string{"too large", "0210 Cancel", "at most 1024"}},
		"bad option":     {[]string{"frame", hex.EncodeToString(option)}, exitInput, []string{"at byte 26", "option tag"}},
		"bad value":      {[]string{"frame", hex.EncodeToString(spoiled)}, exitInput, []string{"reason: is missing"}},
		"unknown type":   {[]string{"body", "0303", hex.EncodeToString(frame[8:])}, exitInput, []string{"unsupported", "another build may know it"}},
		"unknown schema": {[]string{"body", "0210.2", hex.EncodeToString(frame[8:])}, exitInput, []string{"unsupported"}},
		"no type":        {[]string{"body", "cancel", "00"}, exitUsage, []string{"as in 0201"}},
		"no command":     {nil, exitUsage, []string{"usage:"}},
		"wrong command":  {[]string{"show", "x"}, exitUsage, []string{"usage:"}},
		"wrong flag":     {[]string{"-yaml"}, exitUsage, []string{"usage:"}},
		"no file":        {[]string{"stream", "does-not-exist"}, exitFile, []string{"does-not-exist"}},
		"no vectors":     {[]string{"vector", "main.go"}, exitInput, []string{"protocols/vectors"}},
		"no such vector": {[]string{"vector", filepath.Join(root, "protocols/vectors/0.1/0210-cancel.json"), "x"}, exitInput, []string{"no vector \"x\""}},
	} {
		code, _, errs := invoke(t, "", test.args...)
		if code != test.code {
			t.Errorf("%s: exit %d, want %d: %s", name, code, test.code, errs)
		}
		for _, want := range test.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q is not in: %s", name, want, errs)
			}
		}
	}
}

// TestASecretIsNeverShown gives the command a secret on every way in, whole and damaged.
func TestASecretIsNeverShown(t *testing.T) {
	const value = "hunter2-hunter2"
	env := protocol.EnvelopeV1{Protocol: protocol.Current, MessageID: [16]byte{1}}
	frame, err := protocol.AppendFrame(nil, env, &agentv1.SecretMaterialV1{
		Attempt: [16]byte{2}, Lease: [16]byte{3}, Name: "token", Value: protocol.NewSecret([]byte(value)),
	})
	if err != nil {
		t.Fatal(err)
	}
	token, err := protocol.AppendFrame(nil, env, &agentv1.EnrollV1{Token: protocol.NewSecret([]byte(value)), Request: []byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	head, err := protocol.AppendStreamHeader(nil, protocol.StreamSecret, &agentv1.SecretHeaderV1{Attempt: [16]byte{2}, Lease: [16]byte{3}})
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, args := range [][]string{
		{"frame", hex.EncodeToString(frame)},
		{"body", "0702", hex.EncodeToString(frame[8:])},
		{"frame", hex.EncodeToString(token)},
		{"stream", "-"},
		{"frame", hex.EncodeToString(frame[:len(frame)-1])},
		{"body", "0702", hex.EncodeToString(frame[8 : len(frame)-1])},
		{"body", "0501", hex.EncodeToString(frame[8:])},
		{"body", "0702", hex.EncodeToString(append(frame[8:], 0))},
	} {
		for _, flags := range [][]string{nil, {"-json"}} {
			code, out, errs := invoke(t, string(head)+string(frame), append(flags, args...)...)
			if code == exitDecoded && strings.Contains(out, "[secret]") {
				shown++
			}
			all := strings.ToLower(out + errs)
			for _, form := range []string{value, hex.EncodeToString([]byte(value)), "unter2", "aHVudGVyMg"} {
				if strings.Contains(all, strings.ToLower(form)) {
					t.Errorf("%v: the secret is in: %s", args[0], all)
				}
			}
		}
	}
	if shown != 8 {
		t.Errorf("%d times a placeholder, want 8", shown)
	}
}

func TestTheRegistryIsListed(t *testing.T) {
	code, out, errs := invoke(t, "", "types")
	if code != exitDecoded || strings.Count(out, "\n") != len(protocol.Registry()) || !strings.Contains(out, "0201  LeaseOffer") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, out, _ := invoke(t, "", "-json", "types"); !json.Valid([]byte(strings.SplitN(out, "\n", 2)[0])) {
		t.Error(out)
	}
}
