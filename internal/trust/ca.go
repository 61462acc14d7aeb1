package trust

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// Lifetimes.
const (
	CALifetime     = 10 * 365 * 24 * time.Hour
	DaemonLifetime = 7 * 24 * time.Hour  // made anew at each start and at half of it: nobody has to do anything
	RunnerLifetime = 30 * 24 * time.Hour // an agent renews at half of it, so it may be away for two weeks

	// Backdate is how much older than itself a certificate claims to be, for clocks that are behind.
	Backdate = 5 * time.Minute
)

// Files of the daemon's folder.
const (
	caCertFile    = "ca.crt"
	caKeyFile     = "ca.key"
	statelessFile = "stateless.key"
)

// ErrNoCA is for a folder that has none.
var ErrNoCA = errors.New("there is no CA yet")

// CA is the authority of one cluster. It does not change; its methods may be called from several goroutines at once.
type CA struct {
	cluster Cluster
	cert    *x509.Certificate
	key     Key
}

// NewCA makes one that is nowhere stored.
func NewCA(cluster Cluster, now time.Time) (*CA, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: NewSerial().number(),
		Subject:      pkix.Name{CommonName: "Forgeyard CA " + string(cluster)},
		NotBefore:    now.Add(-Backdate), NotAfter: now.Add(CALifetime),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		URIs: []*url.URL{clusterURI(cluster)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	return &CA{cluster, cert, key}, nil
}

// OpenCA loads the CA of a folder, or makes it, with the name that cluster returns, where the folder is missing or empty. It
// does not make a second one beside the rest of a first one: every runner would be cut off. Whoever calls it has made sure
// that nobody else does so on the same folder. The second result says that the CA is new.
func OpenCA(dir string, cluster func() Cluster, now time.Time) (*CA, bool, error) {
	ca, err := LoadCA(dir)
	if !errors.Is(err, ErrNoCA) {
		return ca, false, err
	}
	ca, err = NewCA(cluster(), now)
	if err == nil {
		err = ca.store(dir)
	}
	if err != nil {
		return nil, false, fmt.Errorf("make the CA in %s: %w", dir, err)
	}
	return ca, true, nil
}

// LoadCA loads the CA of a folder. It refuses a folder or a key that others can reach (ErrPermissions), and a key that is
// not that of the certificate. ErrNoCA says that the folder is missing or empty.
func LoadCA(dir string) (*CA, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoCA)
	}
	if err == nil {
		err = checkFolder(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("load the CA: %w", err)
	}
	ca, err := readCA(dir)
	if err != nil {
		return nil, fmt.Errorf("load the CA from %s: %w; if its files are lost, bring them back from a backup: "+
			"with a new CA every runner would have to be enrolled again", dir, err)
	}
	return ca, nil
}

func readCA(dir string) (*CA, error) {
	text, err := readPublic(filepath.Join(dir, caCertFile))
	if err != nil {
		return nil, err
	}
	certs, err := parseCertificates(text)
	if err != nil || len(certs) != 1 {
		return nil, fmt.Errorf("%s: %w", caCertFile, errCertFile)
	}
	cluster, err := clusterOf(certs[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caCertFile, err)
	}
	secret, err := readSecret(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	key, err := parseKey(secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyFile, err)
	}
	if !key.matches(certs[0]) {
		return nil, fmt.Errorf("%s is not the key of %s", caKeyFile, caCertFile)
	}
	return &CA{cluster, certs[0], key}, nil
}

// store puts the whole folder in place at once, so that a crash leaves either all of it or none.
func (ca *CA) store(dir string) error {
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil { // the rest of a start that was interrupted
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), folderMode); err != nil {
		return err
	}
	if err := os.Mkdir(fresh, folderMode); err != nil {
		return err
	}
	key, err := ca.key.pem()
	if err != nil {
		return err
	}
	defer clear(key)
	stateless := newStatelessKey()
	if err := errors.Join(
		disk.WriteFile(filepath.Join(fresh, caKeyFile), key, secretMode),
		disk.WriteFile(filepath.Join(fresh, caCertFile), encodeCertificates(ca.cert), publicMode),
		disk.WriteFile(filepath.Join(fresh, statelessFile), stateless[:], secretMode),
	); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // removes an empty folder only
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	return disk.SyncFolder(filepath.Dir(dir))
}

// Cluster is whose CA it is.
func (ca *CA) Cluster() Cluster { return ca.cluster }

// Certificate is its own certificate. The caller does not change it.
func (ca *CA) Certificate() *x509.Certificate { return ca.cert }

// Fingerprint is what people compare and tokens carry.
func (ca *CA) Fingerprint() Fingerprint { return FingerprintOf(ca.cert) }

// Roots is what trusts it.
func (ca *CA) Roots() Roots { return Roots{ca.cluster, []*x509.Certificate{ca.cert}} }

// String says which CA it is, with its fingerprint.
func (ca *CA) String() string { return fmt.Sprintf("CA of %s, %v", ca.cluster, ca.Fingerprint()) }

// Format prints the same for every verb, so that none looks inside.
func (ca *CA) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(ca.String())) }

// LogValue logs what String says.
func (ca *CA) LogValue() slog.Value { return slog.StringValue(ca.String()) }
