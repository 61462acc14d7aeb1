package trusttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Wrong is a certificate, with its key, that is wrong in one way.
type Wrong struct {
	Name        string
	Certificate *tls.Certificate
}

// Skew is how far certificates that are not valid yet or any more miss the present.
const Skew = 20 * time.Minute

type edit struct {
	name   string
	change func(*x509.Certificate)
}

// validity edits the time of any certificate.
func (w *World) validity() []edit {
	return []edit{
		{"expired", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = w.Now.Add(-48*time.Hour), w.Now.Add(-Skew)
		}},
		{"not yet valid", func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = w.Now.Add(Skew), w.Now.Add(48*time.Hour)
		}},
	}
}

// WrongRunners returns certificates with which nobody may pass for the runner.
func (w *World) WrongRunners(id forge.RunnerID) []Wrong {
	own := "spiffe://" + string(w.CA.Cluster()) + "/runner/" + id.String()
	edits := append(w.validity(), []edit{
		{"no URI", func(c *x509.Certificate) { c.URIs, c.DNSNames = nil, []string{"runner"} }},
		{"two URIs", func(c *x509.Certificate) { c.URIs = URIs(own, own) }},
		{"two URIs, the second of another", func(c *x509.Certificate) { c.URIs = URIs(own, own[:len(own)-1]+"0") }},
		{"URI of another cluster", func(c *x509.Certificate) {
			c.URIs = URIs(strings.Replace(own, string(w.CA.Cluster()), "other-yard", 1))
		}},
		{"URI of a longer cluster", func(c *x509.Certificate) {
			c.URIs = URIs(strings.Replace(own, string(w.CA.Cluster()), string(w.CA.Cluster())+"x", 1))
		}},
		{"URI of a daemon", func(c *x509.Certificate) { c.URIs = URIs("spiffe://" + string(w.CA.Cluster()) + "/daemon") }},
		{"URI of another scheme", func(c *x509.Certificate) { c.URIs = URIs("https" + strings.TrimPrefix(own, "spiffe")) }},
		{"URI with a query", func(c *x509.Certificate) { c.URIs = URIs(own + "?as=admin") }},
		{"URI with a fragment", func(c *x509.Certificate) { c.URIs = URIs(own + "#1") }},
		{"URI with a user", func(c *x509.Certificate) { c.URIs = URIs(strings.Replace(own, "://", "://root@", 1)) }},
		{"URI with a port", func(c *x509.Certificate) { c.URIs = URIs(strings.Replace(own, "/runner", ":1/runner", 1)) }},
		{"URI with more behind it", func(c *x509.Certificate) { c.URIs = URIs(own + "/daemon") }},
		{"URI with an escape", func(c *x509.Certificate) { c.URIs = URIs(strings.Replace(own, "runner", "%72unner", 1)) }},
		{"id in small letters", func(c *x509.Certificate) {
			c.URIs = URIs(own[:len(own)-26] + strings.ToLower(id.String()))
		}},
		{"id of zeros", func(c *x509.Certificate) { c.URIs = URIs(own[:len(own)-26] + forge.RunnerID{}.String()) }},
		{"a host's name besides", func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }},
		{"an address besides", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }},
		{"for servers alone", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }},
		{"for servers besides", func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) }},
		{"a CA", func(c *x509.Certificate) { c.IsCA = true }},
		{"a short serial number", func(c *x509.Certificate) { c.SerialNumber = big.NewInt(7) }},
	}...)
	wrong := w.each(edits, own, x509.ExtKeyUsageClientAuth)
	a, b := w.Runner(id), w.Runner(id)
	stolen := a.TLS()
	stolen.PrivateKey = b.Key()
	wrong = append(wrong, Wrong{"the certificate of another key", stolen})
	return append(wrong, w.others(own, x509.ExtKeyUsageClientAuth, func(other *World) *tls.Certificate { return other.Runner(id).TLS() })...)
}

// WrongDaemons returns certificates with which nobody may pass for a daemon that is asked for by Cluster.ServerName.
func (w *World) WrongDaemons() []Wrong {
	base := "spiffe://" + string(w.CA.Cluster())
	own := base + "/daemon"
	edits := append(w.validity(), []edit{
		{"no URI", func(c *x509.Certificate) { c.URIs = nil }},
		{"two URIs", func(c *x509.Certificate) { c.URIs = URIs(own, own) }},
		{"URI of another cluster", func(c *x509.Certificate) { c.URIs = URIs("spiffe://other-yard/daemon") }},
		{"URI of a runner", func(c *x509.Certificate) { c.URIs = URIs(base + "/runner/01JZ0000000000000000000001") }},
		{"URI with more behind it", func(c *x509.Certificate) { c.URIs = URIs(own + "/x") }},
		{"wrong name", func(c *x509.Certificate) { c.DNSNames = []string{"daemon.other-yard.forgeyard.internal"} }},
		{"no name", func(c *x509.Certificate) { c.DNSNames = nil }},
		{"for clients alone", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
	}...)
	wrong := w.each(edits, own, x509.ExtKeyUsageServerAuth)
	wrong = append(wrong, Wrong{"a runner's certificate", w.Runner(forge.MakeID[forge.RunnerID](forge.ULID{1})).TLS()})
	stolen := w.Daemon()
	stolen.PrivateKey = NewKey(w.t)
	wrong = append(wrong, Wrong{"the certificate of another key", stolen})
	return append(wrong, w.others(own, x509.ExtKeyUsageServerAuth, func(other *World) *tls.Certificate { return other.Daemon() })...)
}

// each makes one certificate for every edit of one that is right.
func (w *World) each(edits []edit, uri string, usage x509.ExtKeyUsage) []Wrong {
	var wrong []Wrong
	for _, e := range edits {
		template := w.template(uri, usage)
		if usage == x509.ExtKeyUsageServerAuth {
			template.DNSNames = []string{w.CA.Cluster().ServerName()}
		}
		e.change(template)
		wrong = append(wrong, Wrong{e.name, w.sign(template, w.CA.Certificate(), w.key, NewKey(w.t))})
	}
	return wrong
}

// others makes certificates that are wrong in who signed them, or with what.
func (w *World) others(uri string, usage x509.ExtKeyUsage, of func(*World) *tls.Certificate) []Wrong {
	template := w.template(uri, usage)
	template.DNSNames = nil
	if usage == x509.ExtKeyUsageServerAuth {
		template.DNSNames = []string{w.CA.Cluster().ServerName()}
	}
	self := NewKey(w.t)
	runner := w.Runner(forge.MakeID[forge.RunnerID](forge.ULID{2}))
	byRunner := w.sign(template, runner.Leaf(), runner.Key(), NewKey(w.t))
	byRunner.Certificate = [][]byte{byRunner.Leaf.Raw, runner.Leaf().Raw}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	return []Wrong{
		{"another CA of the same cluster", of(NewWorld(w.t, w.CA.Cluster(), w.Now))},
		{"the CA of another cluster", of(NewWorld(w.t, trust.Cluster("other-yard"), w.Now))},
		{"signed by itself", w.sign(template, template, self, self)},
		{"signed by a runner", byRunner},
		{"a key of another kind", w.sign(template, w.CA.Certificate(), w.key, curve)},
	}
}
