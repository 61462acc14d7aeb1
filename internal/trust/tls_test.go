package trust_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

var (
	present = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	runner1 = forge.MakeID[forge.RunnerID](forge.ULID{1: 0x9a, 7: 0xfe, 15: 0xf1})
	runner2 = forge.MakeID[forge.RunnerID](forge.ULID{1: 0x9a, 7: 0xfe, 15: 0xf2})
)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func all(forge.RunnerID, trust.Serial) error { return nil }

// ends are the settings of a daemon and an agent that fit.
func ends(w *trusttest.World) (trust.Server, trust.Client) {
	daemon := trust.Server{Roots: w.CA.Roots(), Certificates: trust.NewSource(w.Daemon()), Standing: all, Now: at(w.Now)}
	agent := trust.Client{Roots: w.CA.Roots(), Certificates: trust.NewSource(w.Runner(runner1).TLS()), Now: at(w.Now)}
	return daemon, agent
}

func TestAnAgentAndADaemonOfOneClusterKnowEachOther(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	var met []forge.RunnerID
	s.Standing = func(id forge.RunnerID, serial trust.Serial) error {
		if want, ok := trust.SerialOf(c.Certificates.Certificate().Leaf); !ok || serial != want {
			t.Errorf("asked about serial %v, want %v", serial, want)
		}
		met = append(met, id)
		return nil
	}
	for _, name := range []string{"", "localhost", "127.0.0.1"} {
		c.ServerName = name
		if atServer, atClient := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c)); atServer != nil || atClient != nil {
			t.Errorf("as %q: server %v, client %v", name, atServer, atClient)
		}
	}
	if !slices.Equal(met, []forge.RunnerID{runner1, runner1, runner1}) {
		t.Errorf("the daemon met %v", met)
	}
}

// TestADaemonRefusesCertificatesThatAreWrongInOneWay is S01.
func TestADaemonRefusesCertificatesThatAreWrongInOneWay(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	for _, wrong := range w.WrongRunners(runner1) {
		t.Run(wrong.Name, func(t *testing.T) {
			c := c
			c.Certificates = trust.NewSource(wrong.Certificate)
			if atServer, atClient := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c)); atServer == nil || atClient == nil {
				t.Errorf("server: %v, client: %v", atServer, atClient)
			}
		})
	}
}

func TestADaemonRefusesAnAgentWithoutACertificate(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	config := trust.AgentTLS(c)
	config.GetClientCertificate = nil
	atServer, atClient := trusttest.Shake(t, trust.ServerTLS(s), config)
	if atServer == nil || atClient == nil {
		t.Errorf("server: %v, client: %v", atServer, atClient)
	}
}

// TestAnAgentRefusesDaemonsThatAreWrongInOneWay is S02, on each of the three roads.
func TestAnAgentRefusesDaemonsThatAreWrongInOneWay(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	roads := map[string]*tls.Config{
		"agent":   trust.AgentTLS(c),
		"recover": trust.RecoverTLS(c),
		"enroll":  trust.EnrollTLS(w.CA.Fingerprint(), "", at(w.Now)),
	}
	for road, config := range roads {
		if _, err := trusttest.Shake(t, trust.ServerTLS(s), config); err != nil {
			t.Errorf("%s: the right daemon: %v", road, err)
		}
		for _, wrong := range w.WrongDaemons() {
			t.Run(road+"/"+wrong.Name, func(t *testing.T) {
				s := s
				s.Certificates = trust.NewSource(wrong.Certificate)
				if _, err := trusttest.Shake(t, trust.ServerTLS(s), config); err == nil {
					t.Error("the agent took it")
				}
			})
		}
	}
}

func TestAConfiguredServerNameIsHeldTo(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	c.ServerName = "elsewhere.example"
	if _, err := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c)); err == nil {
		t.Error("the agent took a daemon of another name")
	}
	if _, err := trusttest.Shake(t, trust.ServerTLS(s), trust.EnrollTLS(w.CA.Fingerprint(), c.ServerName, at(w.Now))); err == nil {
		t.Error("the enrolling agent took a daemon of another name")
	}
	if _, err := trusttest.Shake(t, trust.ServerTLS(s), trust.EnrollTLS(w.CA.Fingerprint(), "localhost", at(w.Now))); err != nil {
		t.Error(err)
	}
}

// TestATokensDaemonIsTheOneOfItsFingerprint: somebody in between has a CA of the same cluster's name and shows the real CA
// along with its own.
func TestATokensDaemonIsTheOneOfItsFingerprint(t *testing.T) {
	w, thief := trusttest.NewWorld(t, trusttest.Name, present), trusttest.NewWorld(t, trusttest.Name, present)
	s, _ := ends(thief)
	pin := trust.EnrollTLS(w.CA.Fingerprint(), "", at(present))
	if _, err := trusttest.Shake(t, trust.ServerTLS(s), pin); !errors.Is(err, trust.ErrPin) {
		t.Errorf("another CA: %v, want ErrPin", err)
	}
	cert := thief.Daemon()
	cert.Certificate = append(cert.Certificate, w.CA.Certificate().Raw)
	s.Certificates = trust.NewSource(cert)
	if _, err := trusttest.Shake(t, trust.ServerTLS(s), pin); err == nil {
		t.Error("a daemon of another CA passed by showing the real one's certificate")
	}
}

// TestARevokedRunnerIsRefusedAtEveryHandshake is S04 and T33: also one with whom a session could be resumed.
func TestARevokedRunnerIsRefusedAtEveryHandshake(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	revoked := errors.New("revoked")
	var gone bool
	s.Standing = func(id forge.RunnerID, _ trust.Serial) error {
		if gone && id == runner1 {
			return revoked
		}
		return nil
	}
	server, client := trust.ServerTLS(s), trust.AgentTLS(c)
	client.SessionTicketsDisabled = false
	client.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	if atServer, _ := trusttest.Shake(t, server, client); atServer != nil {
		t.Fatal(atServer)
	}
	gone = true
	for range 1000 {
		if atServer, atClient := trusttest.Shake(t, server, client); !errors.Is(atServer, revoked) || atClient == nil {
			t.Fatalf("server: %v, client: %v", atServer, atClient)
		}
	}
	c.Certificates.Set(w.Runner(runner2).TLS())
	if atServer, _ := trusttest.Shake(t, server, trust.AgentTLS(c)); atServer != nil {
		t.Errorf("another runner: %v", atServer)
	}
}

func TestNothingBelowTLS13IsSpoken(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	old := trust.AgentTLS(c)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if atServer, _ := trusttest.Shake(t, trust.ServerTLS(s), old); atServer == nil {
		t.Error("the daemon spoke TLS 1.2")
	}
	server := trust.ServerTLS(s)
	agents, err := server.GetConfigForClient(&tls.ClientHelloInfo{SupportedProtos: []string{string(protocol.ALPNAgent)}})
	if err != nil {
		t.Fatal(err)
	}
	agents = agents.Clone()
	agents.MinVersion, agents.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, atClient := trusttest.Shake(t, agents, trust.AgentTLS(c)); atClient == nil {
		t.Error("the agent spoke TLS 1.2")
	}
}

func TestTheProtocolsNamePicksWhatIsAskedFor(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	server := trust.ServerTLS(s)
	if atServer, atClient := trusttest.Shake(t, server, trust.RecoverTLS(c)); atServer != nil || atClient != nil {
		t.Errorf("enrolment asks for no certificate: server %v, client %v", atServer, atClient)
	}
	for _, names := range [][]string{
		nil,
		{"h3"},
		{"forgeyard-agent/2"},
		{string(protocol.ALPNSigning)},
		{string(protocol.ALPNDevice)},
		{string(protocol.ALPNAgent), string(protocol.ALPNEnroll)},
		{string(protocol.ALPNEnroll), string(protocol.ALPNAgent)},
	} {
		client := trust.AgentTLS(c)
		client.NextProtos = names
		if atServer, atClient := trusttest.Shake(t, server, client); atServer == nil || atClient == nil {
			t.Errorf("%v: server %v, client %v", names, atServer, atClient)
		}
	}
}

// TestACertificateIsSwappedWhileServing is T28: every listener that was made from the source shows the new one at once.
func TestACertificateIsSwappedWhileServing(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	listeners := []*tls.Config{trust.ServerTLS(s), trust.ServerTLS(s).Clone()}
	shown := func(server *tls.Config, client *tls.Config) (serial string) {
		verify := client.VerifyConnection
		client.VerifyConnection = func(state tls.ConnectionState) error {
			serial = state.PeerCertificates[0].SerialNumber.String()
			return verify(state)
		}
		if atServer, atClient := trusttest.Shake(t, server, client); atServer != nil || atClient != nil {
			t.Fatalf("server %v, client %v", atServer, atClient)
		}
		return serial
	}
	before := s.Certificates.Certificate().Leaf.SerialNumber.String()
	next := w.Daemon()
	for i, server := range listeners {
		if got := shown(server, trust.AgentTLS(c)); got != before {
			t.Errorf("listener %d shows %s before the swap, not %s", i, got, before)
		}
	}
	s.Certificates.Set(next)
	for i, server := range listeners {
		for road, client := range map[string]*tls.Config{"agent": trust.AgentTLS(c), "enroll": trust.RecoverTLS(c)} {
			if got, want := shown(server, client), next.Leaf.SerialNumber.String(); got != want {
				t.Errorf("listener %d shows %s on the road %s after the swap, not %s", i, got, road, want)
			}
		}
	}
}

// TestAnAgentsCertificateIsSwappedForTheNextConnection is T27, as far as TLS goes: the dialer need not be made anew, and the
// runner stays the same.
func TestAnAgentsCertificateIsSwappedForTheNextConnection(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	var serials []trust.Serial
	s.Standing = func(id forge.RunnerID, serial trust.Serial) error {
		if id != runner1 {
			t.Errorf("met %v", id)
		}
		serials = append(serials, serial)
		return nil
	}
	dialer, server := trust.AgentTLS(c), trust.ServerTLS(s)
	for range 2 {
		if atServer, _ := trusttest.Shake(t, server, dialer); atServer != nil {
			t.Fatal(atServer)
		}
		c.Certificates.Set(w.Runner(runner1).TLS())
	}
	if len(serials) != 2 || serials[0] == serials[1] {
		t.Errorf("the daemon saw %v", serials)
	}
}

func TestASourceWithoutACertificateRefusesHandshakes(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	s.Certificates = trust.NewSource(nil)
	if atServer, _ := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c)); atServer == nil {
		t.Error("a handshake without a certificate")
	}
}

// TestNothingElseSkipsVerification holds the one place where crypto/tls may not verify to its one file.
func TestNothingElseSkipsVerification(t *testing.T) {
	root := filepath.Join("..", "..")
	const word = "Insecure" + "SkipVerify"
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // somebody edits the tree
			}
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		n := strings.Count(string(text), word)
		if rel == "internal/trust/tlsclient.go" {
			found = n
		} else if n > 0 {
			t.Errorf("%s names %s", rel, word)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != 1 {
		t.Errorf("internal/trust/tlsclient.go has it %d times, the check looks for one", found)
	}
}

// TestARefusalIsToldByItsAlert: what TLS can say of it, which the road makes reasons of.
func TestARefusalIsToldByItsAlert(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	s, c := ends(w)
	want := map[string]uint8{
		"expired": 45, "not yet valid": 45, "no URI": 42, "another CA of the same cluster": 48,
	}
	for _, wrong := range w.WrongRunners(runner1) {
		alert, ok := want[wrong.Name]
		if !ok {
			continue
		}
		delete(want, wrong.Name)
		c.Certificates = trust.NewSource(wrong.Certificate)
		_, err := trusttest.Shake(t, trust.ServerTLS(s), trust.AgentTLS(c))
		if got := alertOf(t, err); got != alert {
			t.Errorf("%s: %d (%v), want %d", wrong.Name, got, err, alert)
		}
	}
	if len(want) > 0 {
		t.Errorf("not tried: %v", want)
	}
}

// alertOf finds which alert the peer has sent. crypto/tls keeps its number to itself but for its text.
func alertOf(t *testing.T, err error) uint8 {
	t.Helper()
	for n := range 256 {
		if err != nil && strings.HasSuffix(err.Error(), tls.AlertError(n).Error()) {
			return uint8(n)
		}
	}
	t.Fatalf("%v is no alert", err)
	return 0
}

func ExampleFingerprint() {
	f, err := trust.ParseFingerprint("SHA256:" + strings.Repeat("0A:", 31) + "0A")
	fmt.Println(f, err)
	// Output: sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a <nil>
}
