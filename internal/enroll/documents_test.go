package enroll_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/trust"
)

const document = "security.md"

// atRoot goes where protocoltest finds the documents from.
func atRoot(t *testing.T) { t.Chdir(filepath.Join("..", "protocol", "protocoltest")) }

func TestTheDocumentHasTheEventsOfTheCode(t *testing.T) {
	atRoot(t)
	rows, err := protocoltest.ReadTable(document, "event", "when")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(enroll.Events()) {
		t.Errorf("%d rows, %d events", len(rows), len(enroll.Events()))
	}
	for i, event := range enroll.Events()[:min(len(rows), len(enroll.Events()))] {
		if rows[i]["event"] != string(event) {
			t.Errorf("the document has %q, the code %q", rows[i]["event"], event)
		}
	}
}

func TestTheDocumentHasTheIdentitiesOfTheCode(t *testing.T) {
	atRoot(t)
	y := newYard(t, nil)
	rows, err := protocoltest.ReadTable(document, "holder", "URI")
	if err != nil {
		t.Fatal(err)
	}
	id := y.member()
	uris := map[string]string{
		"CA": y.CA.Certificate().URIs[0].String(), "daemon": y.Daemon().Leaf.URIs[0].String(), "runner": id.Leaf().URIs[0].String(),
	}
	lifetimes := map[string]time.Duration{"CA": trust.CALifetime, "daemon": trust.DaemonLifetime, "runner": trust.RunnerLifetime}
	names := strings.NewReplacer("<cluster>", string(y.CA.Cluster()), "<RunnerID>", id.Runner().String(), "`", "")
	for _, row := range rows {
		if got, want := names.Replace(row["URI"]), uris[row["holder"]]; got != want {
			t.Errorf("%s: the document has %q, the code %q", row["holder"], got, want)
		}
		if got, want := row["lifetime"], fmt.Sprintf("%d h", lifetimes[row["holder"]]/time.Hour); got != want {
			t.Errorf("%s lives %s, in the document %s", row["holder"], want, got)
		}
		delete(uris, row["holder"])
	}
	if len(uris) > 0 {
		t.Errorf("the document lacks %v", uris)
	}
}

// TestTheDocumentHasTheTimesOfTheCode looks for the sentences that hold a number.
func TestTheDocumentHasTheTimesOfTheCode(t *testing.T) {
	atRoot(t)
	text, err := os.ReadFile(filepath.Join(protocoltest.Root, "protocols", "internal", document))
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(string(text)), " ")
	minutes := func(d time.Duration) string { return fmt.Sprintf("%d min", d/time.Minute) }
	for _, sentence := range []string{
		"It begins " + minutes(trust.Backdate) + " before it was signed",
		"a clock may be off by " + minutes(trust.EnrollTolerance),
		"It lives " + minutes(trust.TokenLifetime) + " unless said otherwise and at most " + fmt.Sprintf("%d h", trust.MaxTokenLifetime/time.Hour),
		"certificate ended no more than " + fmt.Sprintf("%d days", enroll.RecoverWithin/(24*time.Hour)) + " ago",
		trust.TokenPrefix + " base32(",
		"`" + trust.Cluster("<cluster>").ServerName() + "`",
	} {
		if !strings.Contains(flat, sentence) {
			t.Errorf("the document does not say %q", sentence)
		}
	}
}
