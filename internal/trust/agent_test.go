package trust_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func openFolder(t *testing.T) *trust.Folder {
	t.Helper()
	folder, err := trust.OpenFolder(filepath.Join(t.TempDir(), "a", "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// enrolled puts an identity for the folder's key together.
func enrolled(t *testing.T, w *trusttest.World, folder *trust.Folder) *trust.Identity {
	t.Helper()
	key, err := folder.Key()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := w.CA.IssueRunner(trusttest.NewRequest(t, key), runner1, w.Now, 0)
	if err != nil {
		t.Fatal(err)
	}
	id, err := trust.NewIdentity(key, [][]byte{cert.Raw}, w.CA.Roots().DER())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnAgentKeepsItsKeyAndItsCertificates(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	folder := openFolder(t)
	if _, err := folder.Load(); !errors.Is(err, trust.ErrNotEnrolled) {
		t.Fatal(err)
	}
	for range 2 { // a renewal has the same key
		id := enrolled(t, w, folder)
		if err := folder.Save(id); err != nil {
			t.Fatal(err)
		}
		again, err := trust.OpenFolder(folder.Dir())
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.Load()
		if err != nil {
			t.Fatal(err)
		}
		if got.Runner() != runner1 || !got.Leaf().Equal(id.Leaf()) || got.Cluster() != trusttest.Name || !got.Roots().Has(w.CA.Fingerprint()) {
			t.Errorf("%v became %v", id, got)
		}
	}
	names, err := os.ReadDir(folder.Dir())
	if err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "runner.key": 0o600} {
		if info, err := os.Stat(filepath.Join(folder.Dir(), name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestAnAgentRefusesWhatDoesNotFitOrOthersCanRead(t *testing.T) {
	w, other := trusttest.NewWorld(t, trusttest.Name, present), trusttest.NewWorld(t, "other-yard", present)
	key := trusttest.NewKey(t)
	mine, err := w.CA.IssueRunner(trusttest.NewRequest(t, key), runner1, present, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := w.Runner(runner1).Leaf()
	for name, test := range map[string]struct{ chain, roots [][]byte }{
		"another key":            {[][]byte{theirs.Raw}, w.CA.Roots().DER()},
		"another cluster's root": {[][]byte{mine.Raw}, other.CA.Roots().DER()},
		"roots of two clusters":  {[][]byte{mine.Raw}, append(w.CA.Roots().DER(), other.CA.Roots().DER()...)},
		"another CA":             {[][]byte{mine.Raw}, trusttest.NewWorld(t, trusttest.Name, present).CA.Roots().DER()},
		"no root":                {[][]byte{mine.Raw}, nil},
		"a root that is none":    {[][]byte{mine.Raw}, [][]byte{mine.Raw}},
		"no certificate":         {nil, w.CA.Roots().DER()},
		"rubbish":                {[][]byte{{1, 2, 3}}, w.CA.Roots().DER()},
		"five roots":             {[][]byte{mine.Raw}, append(append(w.CA.Roots().DER(), mine.Raw, mine.Raw), mine.Raw, mine.Raw)},
	} {
		if _, err := trust.NewIdentity(key, test.chain, test.roots); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for _, wrong := range w.WrongRunners(runner1) {
		if wrong.Name == "expired" || wrong.Name == "not yet valid" {
			continue // that is for the daemon to say
		}
		if key, ok := wrong.Certificate.PrivateKey.(trust.Key); ok {
			if _, err := trust.NewIdentity(key, wrong.Certificate.Certificate[:1], w.CA.Roots().DER()); err == nil &&
				wrong.Name != "for servers besides" && wrong.Name != "a short serial number" {
				t.Errorf("%s was taken", wrong.Name)
			}
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	folder := openFolder(t)
	if err := folder.Save(enrolled(t, w, folder)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder.Dir(), "runner.key")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Load(); !errors.Is(err, trust.ErrPermissions) {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Load(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a certificate without its key: %v", err)
	}
	if err := os.Chmod(folder.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.OpenFolder(folder.Dir()); !errors.Is(err, trust.ErrPermissions) {
		t.Error(err)
	}
}

func TestExpiryIsSeenComing(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	cert := w.Runner(runner1).Leaf()
	const day = 24 * time.Hour
	for _, test := range []struct {
		after time.Duration
		want  trust.Expiry
	}{
		{0, trust.ExpiryFine},
		{14 * day, trust.ExpiryFine},
		{15*day + time.Hour, trust.ExpiryDue},
		{24 * day, trust.ExpiryDue},
		{25*day + time.Hour, trust.ExpirySoon},
		{30*day - time.Second, trust.ExpirySoon},
		{30 * day, trust.ExpiryOver},
	} {
		if got := trust.ExpiryOf(cert, present.Add(test.after)); got != test.want {
			t.Errorf("after %v: %v, want %v", test.after, got, test.want)
		}
	}
}

// TestADaemonsCertificateIsKeptFresh is T28: before its end there is another one in place, whatever fails meanwhile.
func TestADaemonsCertificateIsKeptFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := trusttest.NewWorld(t, trusttest.Name, time.Now())
		source := trust.NewSource(w.Daemon())
		first := source.Certificate().Leaf
		failures := 3
		issue := func(now time.Time) (*tls.Certificate, error) {
			if failures--; failures >= 0 {
				return nil, errors.New("no")
			}
			return w.CA.IssueDaemon(nil, now)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			trust.KeepFresh(ctx, source, issue, slog.New(slog.DiscardHandler))
		}()
		time.Sleep(time.Until(trust.RenewAt(first)) - time.Second) // of the bubble's clock
		synctest.Wait()
		if !source.Certificate().Leaf.Equal(first) {
			t.Error("it was renewed before its time")
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if leaf := source.Certificate().Leaf; leaf.Equal(first) || failures > 0 {
			t.Error("it was not renewed")
		}
		cancel()
		<-done
	})
}

// TestAWrongClockIsNamed is B32.
func TestAWrongClockIsNamed(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	behind, ahead := present.Add(-trusttest.Skew), s.Certificates.Certificate().Leaf.NotAfter.Add(trusttest.Skew)
	for _, test := range []struct {
		now   time.Time
		parts []string
		skew  time.Duration
	}{
		{behind, []string{"this machine's clock", "behind", "20 min", "set the one that is wrong", "11:40:00 UTC", "11:55:00 UTC"}, -20 * time.Minute},
		{ahead, []string{"this machine's clock", "ahead", "20 min", "set the one that is wrong", "expired"}, 20 * time.Minute},
	} {
		c.Now = at(test.now)
		for road, config := range map[string]*tls.Config{
			"agent": trust.AgentTLS(c), "enroll": trust.EnrollTLS(w.CA.Fingerprint(), "", at(test.now)),
		} {
			_, err := trusttest.Shake(t, trust.ServerTLS(s), config)
			err = trust.Explain(err, test.now)
			clock, ok := errors.AsType[*trust.ClockError](err)
			if !ok || clock.Skew() != test.skew {
				t.Errorf("%s: %v", road, err)
				continue
			}
			for _, part := range test.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", road, err, part)
				}
			}
		}
	}
	if err := errors.New("other"); trust.Explain(err, present) != err {
		t.Error("another error was changed")
	}
}

func TestADaemonWithAnotherClockIsNamedToo(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	leaf := w.Runner(runner1).Leaf()
	s, c := ends(w)
	s.Now = at(present.Add(-trusttest.Skew)) // the daemon's clock went back after it had signed
	_, err := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c))
	if alertOf(t, err) != 45 {
		t.Fatal(err)
	}
	if err := trust.ExplainExpired(leaf, present.Add(time.Hour)); !errors.Is(err, trust.ErrClocksDiffer) || !strings.Contains(err.Error(), "1 h 5 min") {
		t.Error(err)
	}
	if err := trust.ExplainExpired(leaf, leaf.NotAfter.Add(time.Hour)); err != nil {
		t.Errorf("it has expired by both clocks: %v", err)
	}
}

// TestAtEnrolmentAClockMayBeALittleOff is the only tolerance there is (S29).
func TestAtEnrolmentAClockMayBeALittleOff(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	begin := s.Certificates.Certificate().Leaf.NotBefore
	for _, test := range []struct {
		now           time.Time
		enroll, agent bool
	}{
		{begin, true, true},
		{begin.Add(-time.Second), true, false},
		{begin.Add(-trust.EnrollTolerance), true, false},
		{begin.Add(-trust.EnrollTolerance - time.Second), false, false},
	} {
		_, err := trusttest.Shake(t, trust.ServerTLS(s), trust.EnrollTLS(w.CA.Fingerprint(), "", at(test.now)))
		if (err == nil) != test.enroll {
			t.Errorf("enrolment at %v: %v", test.now, err)
		}
		c.Now = at(test.now)
		if _, err := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c)); (err == nil) != test.agent {
			t.Errorf("agent at %v: %v", test.now, err)
		}
	}
}
