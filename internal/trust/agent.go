package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Files of an agent's folder of keys.
const (
	runnerKeyFile  = "runner.key"
	runnerCertFile = "runner.crt" // its chain, the runner's own first, and behind it the CAs of the daemons
)

// Errors of an agent's identity.
var (
	ErrNotEnrolled = errors.New("this agent is not enrolled")
	ErrMismatch    = errors.New("the certificate does not fit")
)

// Identity is who an agent is: its key, its certificate and the CAs that it trusts. It does not change; a renewal makes
// another one with the same runner.
type Identity struct {
	key    Key
	runner forge.RunnerID
	chain  []*x509.Certificate
	roots  Roots
}

// NewIdentity puts an identity together and checks that all of it fits: the certificate is for this key, names a runner of
// the cluster and was signed for clients by one of the roots. It does not look at the time, so that a clock that is wrong does not
// lock anybody out: whether a certificate is still good is for the other side to say.
func NewIdentity(key Key, chain, roots [][]byte) (*Identity, error) {
	trusted, err := NewRoots(roots)
	if err != nil {
		return nil, err
	}
	id := &Identity{key: key, roots: trusted}
	for _, der := range chain {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%w: it cannot be read", ErrMismatch)
		}
		id.chain = append(id.chain, cert)
	}
	if len(id.chain) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrMismatch)
	}
	if !key.matches(id.Leaf()) {
		return nil, fmt.Errorf("%w: it is for another key", ErrMismatch)
	}
	if id.runner, err = RunnerOf(id.Leaf(), trusted.cluster); err != nil {
		return nil, err
	}
	if err := trusted.verify(id.chain, x509.ExtKeyUsageClientAuth, "", id.Leaf().NotBefore.Add(Backdate)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return id, nil
}

// Runner is who it is.
func (id *Identity) Runner() forge.RunnerID { return id.runner }

// Cluster is whose runner it is.
func (id *Identity) Cluster() Cluster { return id.roots.cluster }

// Roots is what it trusts.
func (id *Identity) Roots() Roots { return id.roots }

// Key is its key.
func (id *Identity) Key() Key { return id.key }

// Leaf is its own certificate.
func (id *Identity) Leaf() *x509.Certificate { return id.chain[0] }

// TLS is the certificate as a handshake needs it.
func (id *Identity) TLS() *tls.Certificate {
	cert := &tls.Certificate{PrivateKey: id.key, Leaf: id.Leaf()}
	for _, c := range id.chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return cert
}

// Format prints the runner for every verb, so that none looks inside.
func (id *Identity) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "runner %v of %s", id.runner, id.Cluster())
}

// Folder is where an agent keeps its key and certificate: one folder that only its owner can enter. One process uses it
// at a time.
type Folder struct{ dir string }

// OpenFolder opens the folder, and makes it where it is missing. It refuses one that others can reach.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("open the folder of keys: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("open the folder of keys: %w", err)
	}
	return &Folder{dir}, nil
}

// Dir is where it is.
func (f *Folder) Dir() string { return f.dir }

// Key returns the agent's key, and makes it at the first call. It is on disk before anybody gets to know its public half:
// otherwise a crash could use a token up for a key that is gone.
func (f *Folder) Key() (Key, error) {
	path := filepath.Join(f.dir, runnerKeyFile)
	text, err := readSecret(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.newKey(path)
	case err != nil:
		return Key{}, fmt.Errorf("load the runner's key: %w", err)
	}
	defer clear(text)
	key, err := parseKey(text)
	if err != nil {
		return Key{}, fmt.Errorf("load the runner's key: %s: %w", path, err)
	}
	return key, nil
}

func (f *Folder) newKey(path string) (Key, error) {
	key, err := NewKey()
	if err != nil {
		return Key{}, err
	}
	text, err := key.pem()
	if err != nil {
		return Key{}, err
	}
	defer clear(text)
	if err := disk.WriteFile(path, text, secretMode); err != nil {
		return Key{}, fmt.Errorf("store the runner's key: %w", err)
	}
	return key, nil
}

// Load returns the identity, or ErrNotEnrolled.
func (f *Folder) Load() (*Identity, error) {
	path := filepath.Join(f.dir, runnerCertFile)
	text, err := readPublic(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotEnrolled
	}
	if err != nil {
		return nil, fmt.Errorf("load the runner's certificate: %w", err)
	}
	certs, err := parseCertificates(text)
	if err != nil {
		return nil, fmt.Errorf("load the runner's certificate: %s: %w", path, err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, runnerKeyFile)); err != nil {
		return nil, fmt.Errorf("load the runner's key, which belongs to %s: %w", path, err)
	}
	key, err := f.Key()
	if err != nil {
		return nil, err
	}
	var chain, roots [][]byte
	for _, cert := range certs {
		if _, err := clusterOf(cert); err == nil {
			roots = append(roots, cert.Raw)
		} else {
			chain = append(chain, cert.Raw)
		}
	}
	id, err := NewIdentity(key, chain, roots)
	if err != nil {
		return nil, fmt.Errorf("load the runner's certificate: %s: %w", path, err)
	}
	return id, nil
}

// Save stores certificate and roots at once and durably. Use nothing of an identity before: with its first use the daemon
// refuses the certificate before it.
func (f *Folder) Save(id *Identity) error {
	text := encodeCertificates(append(append([]*x509.Certificate(nil), id.chain...), id.roots.certs...)...)
	if err := disk.WriteFile(filepath.Join(f.dir, runnerCertFile), text, publicMode); err != nil {
		return fmt.Errorf("store the runner's certificate: %w", err)
	}
	return nil
}

// Expiry says how a certificate stands.
type Expiry uint8

// The stages, in their order.
const (
	ExpiryFine Expiry = 1
	ExpiryDue  Expiry = 2 // past half of its time: renew
	ExpirySoon Expiry = 3 // less than a sixth of its time is left: warn (09§22)
	ExpiryOver Expiry = 4
)

func (e Expiry) String() string {
	switch e {
	case ExpiryFine:
		return "fine"
	case ExpiryDue:
		return "due for renewal"
	case ExpirySoon:
		return "expires soon"
	default:
		return "expired"
	}
}

// RenewAt is when half of a certificate's time is over. Whoever has many of them adds a spread.
func RenewAt(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 2)
}

// ExpiryOf says how a certificate stands at a moment.
func ExpiryOf(cert *x509.Certificate, now time.Time) Expiry {
	left := cert.NotAfter.Sub(now)
	switch {
	case left <= 0:
		return ExpiryOver
	case left < cert.NotAfter.Sub(cert.NotBefore)/6:
		return ExpirySoon
	case !now.Before(RenewAt(cert)):
		return ExpiryDue
	default:
		return ExpiryFine
	}
}
