package trust_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func named() trust.Cluster { return trusttest.Name }

func TestACAIsMadeOnceAndFoundAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "trust")
	first, fresh, err := trust.OpenCA(dir, named, present)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	again, fresh, err := trust.OpenCA(dir, func() trust.Cluster { return "another" }, present.Add(time.Hour))
	if err != nil || fresh {
		t.Fatal(fresh, err)
	}
	if again.Fingerprint() != first.Fingerprint() || again.Cluster() != trusttest.Name {
		t.Errorf("%v became %v", first, again)
	}
	if _, err := trust.LoadStatelessKey(dir); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "ca.key": 0o600, "stateless.key": 0o600, "ca.crt": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if rest, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(rest) != 1 {
		t.Errorf("beside the folder: %v, %v", rest, err)
	}
}

func TestAnEmptyFolderAndAnInterruptedStartGetACA(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	for _, d := range []string{dir, dir + ".new"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir+".new", "ca.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := trust.OpenCA(dir, named, present); err != nil || !fresh {
		t.Error(fresh, err)
	}
}

// TestNoSecondCAIsMadeBesideTheRestOfAFirstOne: with another CA every runner would be cut off.
func TestNoSecondCAIsMadeBesideTheRestOfAFirstOne(t *testing.T) {
	other := trusttest.NewWorld(t, trusttest.Name, present)
	for name, spoil := range map[string]func(dir string) error{
		"no key":         func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
		"no certificate": func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) },
		"empty key":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.key"), nil, 0o600) },
		"torn certificate": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("-----BEGIN CERTIFICATE-----\n"), 0o600)
		},
		"huge key": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ca.key"), bytes.Repeat([]byte{'a'}, 1<<20), 0o600)
		},
		"another CA's key": func(dir string) error {
			text, err := os.ReadFile(filepath.Join(other.Dir, "ca.key"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "ca.key"), text, 0o600)
		},
		"a daemon's certificate": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ca.crt"), pemOf(other.Daemon().Leaf.Raw), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := trusttest.NewWorld(t, trusttest.Name, present)
			if err := spoil(w.Dir); err != nil {
				t.Fatal(err)
			}
			_, fresh, err := trust.OpenCA(w.Dir, named, present)
			if err == nil || fresh {
				t.Fatalf("fresh %v, %v", fresh, err)
			}
			if !strings.Contains(err.Error(), w.Dir) || strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error does not say where, or says too much: %v", err)
			}
		})
	}
}

func TestKeysThatOthersCanReachAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such permissions")
	}
	for name, mode := range map[string]os.FileMode{"ca.key": 0o640, "": 0o750, "ca.key ": 0o604} {
		w := trusttest.NewWorld(t, trusttest.Name, present)
		path := filepath.Join(w.Dir, strings.TrimSpace(name))
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := trust.LoadCA(w.Dir)
		if !errors.Is(err, trust.ErrPermissions) || !strings.Contains(err.Error(), "chmod") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s with %v: %v", path, mode, err)
		}
	}
	w := trusttest.NewWorld(t, trusttest.Name, present)
	if err := os.Chmod(filepath.Join(w.Dir, "stateless.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.LoadStatelessKey(w.Dir); !errors.Is(err, trust.ErrPermissions) {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.Dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.LoadCA(link); err == nil {
		t.Error("a folder behind a link was taken")
	}
}

func TestNoCertificateOutlivesItsCAOrIsMadeAfterIt(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	request := trusttest.NewRequest(t, trusttest.NewKey(t))
	end := w.CA.Certificate().NotAfter
	cert, err := w.CA.IssueRunner(request, runner1, end.Add(-time.Hour), 0)
	if err != nil || !cert.NotAfter.Equal(end) {
		t.Errorf("%v, %v, want %v", cert.NotAfter, err, end)
	}
	for _, now := range []time.Time{end, end.Add(time.Hour), w.CA.Certificate().NotBefore.Add(-trust.RunnerLifetime)} {
		if _, err := w.CA.IssueRunner(request, runner1, now, 0); !errors.Is(err, trust.ErrLifetime) {
			t.Errorf("at %v: %v, want ErrLifetime", now, err)
		}
	}
	if _, err := w.CA.IssueRunner(request, forge.RunnerID{}, present, 0); err == nil {
		t.Error("a certificate for nobody")
	}
}

func TestACertificateBeginsALittleEarlierAndHasASerialOfItsOwn(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	request := trusttest.NewRequest(t, trusttest.NewKey(t))
	seen := map[trust.Serial]bool{}
	for range 200 {
		cert, err := w.CA.IssueRunner(request, runner1, present.Add(time.Hour), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		serial, ok := trust.SerialOf(cert)
		if !ok || seen[serial] {
			t.Fatalf("serial %v, %v", serial, ok)
		}
		seen[serial] = true
		if begin, end := present.Add(time.Hour-trust.Backdate), present.Add(2*time.Hour); !cert.NotBefore.Equal(begin) || !cert.NotAfter.Equal(end) {
			t.Fatalf("from %v to %v, want %v to %v", cert.NotBefore, cert.NotAfter, begin, end)
		}
	}
}

func TestADaemonsNamesAreHostsOrAddresses(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	for _, name := range []string{"", "*.example", "a host", "host:7443", "quic://host", ".host", "-host", strings.Repeat("a", 254)} {
		if _, err := w.CA.IssueDaemon([]string{name}, present); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if _, err := w.CA.IssueDaemon([]string{"build-1.example", "::1", "192.0.2.1"}, present); err != nil {
		t.Error(err)
	}
}

func TestClusterNames(t *testing.T) {
	for _, bad := range []trust.Cluster{"", "A", "a/b", "a.b", "-a", "a-", "a b", "ä", trust.Cluster(strings.Repeat("a", 64))} {
		if err := bad.Validate(); !errors.Is(err, trust.ErrCluster) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := trust.NewCA(bad, present); err == nil {
			t.Errorf("a CA of %q", bad)
		}
	}
	for _, good := range []trust.Cluster{"a", "fy-1", trust.Cluster(strings.Repeat("a", 63)), trust.NewCluster()} {
		if err := good.Validate(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if one, two := trust.NewCluster(), trust.NewCluster(); one == two {
		t.Error("two clusters of one name")
	}
}

func TestARequestProvesItsKey(t *testing.T) {
	key := trusttest.NewKey(t)
	der, err := trust.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := key.ID(); err != nil || id != request.Key() {
		t.Errorf("%v, %v, want %v", request.Key(), err, id)
	}
	forged := bytes.Clone(der)
	forged[len(forged)-1] ^= 1
	for name, bad := range map[string][]byte{
		"another signature": forged, "nothing": nil, "rubbish": []byte("rubbish"), "a byte too many": append(bytes.Clone(der), 0),
		"too long": append(bytes.Clone(der), make([]byte, trust.MaxRequest)...),
	} {
		if _, err := trust.ParseRequest(bad); !errors.Is(err, trust.ErrRequest) {
			t.Errorf("%s: %v, want ErrRequest", name, err)
		}
	}
	for n := range der {
		if _, err := trust.ParseRequest(der[:n]); !errors.Is(err, trust.ErrRequest) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	key, err := trust.NewKey()
	if err != nil {
		f.Fatal(err)
	}
	der, err := trust.NewRequest(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := trust.ParseRequest(data); err != nil && !errors.Is(err, trust.ErrRequest) {
			t.Error(err)
		}
	})
}
