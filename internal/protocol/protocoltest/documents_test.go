package protocoltest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/postcard"
)

const wireDocument = "agent-daemon.md"

func table(t *testing.T, document string, columns ...string) protocoltest.Table {
	t.Helper()
	rows, err := protocoltest.ReadTable(document, columns...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTheDocumentHasTheRegistryOfTheCode(t *testing.T) {
	stages := map[string]string{}
	for _, row := range table(t, wireDocument, "when", "states") {
		stages[row["when"]] = row["states"]
	}
	rows, registry := table(t, wireDocument, "id", "message"), protocol.Registry()
	if len(rows) != len(registry) {
		t.Errorf("%d rows, %d registered types", len(rows), len(registry))
	}
	for i, info := range registry[:min(len(rows), len(registry))] {
		want := protocoltest.RegistryRow(info)
		want["when"] = rows[i]["when"]
		if diff := cmp.Diff(want, rows[i]); diff != "" {
			t.Errorf("%s, -code +document:\n%s", info.Name, diff)
		}
		if got := stages[rows[i]["when"]]; got != protocoltest.States(info.When) {
			t.Errorf("%s may come in %s, the document says %s", info.Name, protocoltest.States(info.When), got)
		}
	}
}

func TestEveryRegisteredTypeHasVectorsATestAndAFuzzTarget(t *testing.T) {
	functions, err := protocoltest.Functions()
	if err != nil {
		t.Fatal(err)
	}
	files, err := protocoltest.VectorFiles(current)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range protocol.Registry() {
		for _, name := range []string{"Test" + info.Name, "Fuzz" + info.Name} {
			if !functions[name] {
				t.Errorf("%s has no %s", info.Name, name)
			}
		}
		name := protocoltest.VectorFileName(info)
		f, ok := files[name]
		if !ok || f.Name != info.Name || f.Schema != info.Schema || f.Type != fmt.Sprintf("%04x", uint16(info.ID)) {
			t.Errorf("%s: %s is %s, type %s, schema %d", info.Name, name, f.Name, f.Type, f.Schema)
		}
		if len(f.Vectors) < 3 {
			t.Errorf("%s has %d vectors, not at least three", info.Name, len(f.Vectors))
		}
		delete(files, name)
	}
	for _, name := range []string{"FuzzStreamHeader", "FuzzFrameReader"} {
		if !functions[name] {
			t.Errorf("there is no %s", name)
		}
	}
	delete(files, protocoltest.HeadFileName)
	for name := range files {
		t.Errorf("%s belongs to no registered type", name)
	}
}

func TestTheDocumentHasTheStreamKindsOfTheCode(t *testing.T) {
	rows := table(t, wireDocument, "kind", "name")
	for i, info := range protocol.StreamKinds() {
		schema := "—"
		if info.Schema != 0 {
			schema = fmt.Sprint(info.Schema)
		}
		got := [...]string{rows[i]["kind"], rows[i]["name"], rows[i]["schema"]}
		if want := [...]string{fmt.Sprint(uint8(info.Kind)), info.Name, schema}; got != want {
			t.Errorf("the document has %v, the code %v", got, want)
		}
		if states := protocoltest.States(info.When); info.Schema != 0 && !strings.HasSuffix(rows[i]["opened"], strings.ReplaceAll(states, ", ", " or ")) {
			t.Errorf("%v is opened in %s, the document says %q", info.Kind, states, rows[i]["opened"])
		}
	}
	if len(rows) != len(protocol.StreamKinds()) {
		t.Errorf("%d rows", len(rows))
	}
}

func TestTheDocumentHasTheCodesOfTheCode(t *testing.T) {
	rows := table(t, wireDocument, "code", "name", "class")
	i := 0
	for reason := forge.CloseNormal; reason.Valid(); reason++ {
		if reason == forge.CloseLost {
			continue
		}
		got := [...]string{rows[i]["code"], rows[i]["name"], rows[i]["class"]}
		code := fmt.Sprintf("%#x", uint32(protocol.CloseCodeOf(reason)))
		if want := [...]string{code, reason.String(), protocoltest.Classes[reason.Retry()]}; got != want {
			t.Errorf("the document has %v, the code %v", got, want)
		}
		i++
	}
	if i != len(rows) {
		t.Errorf("%d close codes, %d rows", i, len(rows))
	}
	resets := table(t, wireDocument, "code", "name", "try again")
	for i, c := range protocol.ResetCodes() {
		got := [...]string{resets[i]["code"], resets[i]["name"], resets[i]["try again"]}
		if want := [...]string{fmt.Sprintf("%#x", uint32(c)), c.String(), c.Retry().String()}; got != want {
			t.Errorf("the document has %v, the code %v", got, want)
		}
	}
	if len(resets) != len(protocol.ResetCodes()) {
		t.Errorf("%d reset codes, %d rows", len(protocol.ResetCodes()), len(resets))
	}
}

func TestTheDocumentHasTheRolesOfTheCode(t *testing.T) {
	for i, row := range table(t, wireDocument, "role") {
		role := protocol.Role(i + 1)
		if want := fmt.Sprintf("%d %v", i+1, role); row["role"] != want {
			t.Errorf("the document has %q, the code %q", row["role"], want)
		}
		var speaks []string
		for f := protocol.FamilyAgent; f <= protocol.FamilyDevice; f++ {
			if role.Speaks(f) {
				speaks = append(speaks, f.String())
			}
		}
		got := row["families, besides session, enroll and registration"]
		if want := strings.Join(speaks, ", "); got != want {
			t.Errorf("%v: the document has %q, the code %q", role, got, want)
		}
	}
	for _, row := range table(t, wireDocument, "ALPN") {
		alpn := protocol.ALPN(strings.Trim(row["ALPN"], "`"))
		for role := protocol.RoleAgent; role.Valid(); role++ {
			listed := row["for roles"] == "every role" || strings.Contains(", "+row["for roles"]+",", ", "+role.String()+",")
			if alpn.Admits(role) != listed {
				t.Errorf("%s admits %v: %v, the document says %q", alpn, role, alpn.Admits(role), row["for roles"])
			}
		}
	}
}

func TestTheDocumentsNumberVerdictsAndAnswersAsTheCode(t *testing.T) {
	for _, test := range []struct {
		document, column string
		name             func(n int) string
	}{
		{"leases.md", "verdict", func(n int) string { return agentv1.VerdictV1(n).String() }},
		{"leases.md", "answer", func(n int) string { return agentv1.AnswerV1(n).String() }},
		{"heartbeat.md", "pressure", func(n int) string { return agentv1.PressureV1(n).String() }},
		{"heartbeat.md", "status", func(n int) string { return agentv1.HealthStatusV1(n).String() }},
		{"heartbeat.md", "check", func(n int) string { return agentv1.HealthCheckV1(n).String() }},
		{"reconnect.md", "decision", func(n int) string { return agentv1.RecoveryVerdictV1(n).String() }},
	} {
		rows := table(t, test.document, test.column)
		for i, row := range rows {
			if want := fmt.Sprintf("%d %s", i+1, test.name(i+1)); row[test.column] != want {
				t.Errorf("%s has %q, the code %q", test.document, row[test.column], want)
			}
		}
		if next := test.name(len(rows) + 1); !strings.HasPrefix(next, "unknown") {
			t.Errorf("%s has no row for %s", test.document, next)
		}
	}
}

func TestTheDocumentHasTheFeaturesOfTheCode(t *testing.T) {
	rows := table(t, "compatibility.md", "number", "feature")
	for i, f := range protocol.Features() {
		if got, want := rows[i]["number"]+" "+rows[i]["feature"], fmt.Sprintf("%d %v", uint16(f), f); got != want {
			t.Errorf("the document has %q, the code %q", got, want)
		}
	}
	if len(rows) != len(protocol.Features()) {
		t.Errorf("%d features, %d rows", len(protocol.Features()), len(rows))
	}
}

// TestEveryVersionHasADatedLineAndVectors: a claim of compatibility without bytes to hold it to is none.
func TestEveryVersionHasADatedLineAndVectors(t *testing.T) {
	lines := map[string]bool{}
	for _, row := range table(t, "compatibility.md", "version", "date") {
		if _, err := time.Parse(time.DateOnly, row["date"]); err != nil {
			t.Errorf("version %s: %v", row["version"], err)
		}
		lines[row["version"]] = true
		if _, err := os.Stat(filepath.Join(protocoltest.Root, "protocols", "vectors", row["version"])); err != nil {
			t.Errorf("version %s: %v", row["version"], err)
		}
	}
	for _, r := range protocol.Supported() {
		for minor := r.MinMinor; minor <= r.MaxMinor; minor++ {
			if v := (protocol.Version{Major: r.Major, Minor: minor}); !lines[v.String()] {
				t.Errorf("version %v is spoken and has no line in compatibility.md", v)
			}
		}
	}
}

func TestTheEnvelopeIsNoLongerThanItsBound(t *testing.T) {
	env := protocoltest.Samples(protocol.TypeCancel)[2].Envelope()
	env.SentAt = -1 << 63 // no time, but as long as a time can be
	largest, err := postcard.Marshal(env)
	if err != nil || len(largest) != protocol.MaxEnvelope {
		t.Errorf("%d bytes, %v; the bound is %d", len(largest), err, protocol.MaxEnvelope)
	}
}

func TestEveryFamilyHasItsOwnMessagesAndSchemas(t *testing.T) {
	families := map[protocol.Family]int{}
	for _, info := range protocol.Registry() {
		if info.Schema == 0 || info.Family == 0 {
			t.Errorf("%s has schema %d and family %v", info.Name, info.Schema, info.Family)
		}
		families[info.Family]++
		w, ok := wire.New(protocol.Tag{Type: info.ID, Schema: info.Schema})
		if name := fmt.Sprintf("%T", w); !ok || !strings.HasSuffix(name, fmt.Sprintf("V%d", info.Schema)) {
			t.Errorf("%s, schema %d, is a %s", info.Name, info.Schema, name)
		}
	}
	if len(families) != int(protocol.FamilySecret) {
		t.Errorf("%d families", len(families))
	}
}

func TestReadTableRefusesWhatIsNoTable(t *testing.T) {
	for _, test := range [][]string{{wireDocument, "no such column"}, {"no-such-document.md", "id"}} {
		if rows, err := protocoltest.ReadTable(test[0], test[1:]...); err == nil {
			t.Errorf("%v: %d rows", test, len(rows))
		}
	}
}
