package trust

import (
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrIdentity is the kind of error for a certificate that names nobody, or somebody else than it should.
var ErrIdentity = errors.New("certificate has the wrong identity")

const (
	scheme     = "spiffe"
	daemonPath = "/daemon"
	runnerPath = "/runner/"
)

func daemonURI(c Cluster) *url.URL {
	return &url.URL{Scheme: scheme, Host: string(c), Path: daemonPath}
}

func runnerURI(c Cluster, id forge.RunnerID) *url.URL {
	return &url.URL{Scheme: scheme, Host: string(c), Path: runnerPath + id.String()}
}

func clusterURI(c Cluster) *url.URL { return &url.URL{Scheme: scheme, Host: string(c)} }

// RunnerOf returns the runner that a certificate names. The certificate must have exactly one URI, of this cluster, in
// exactly the spelling in which this package writes it, and no other name; its key must be Ed25519. Whether the
// certificate is to be believed is not decided here: verify it first. The error is of the kind ErrIdentity.
func RunnerOf(cert *x509.Certificate, cluster Cluster) (forge.RunnerID, error) {
	path, err := pathOf(cert, cluster)
	if err != nil {
		return forge.RunnerID{}, err
	}
	text, ok := strings.CutPrefix(path, runnerPath)
	if !ok {
		return forge.RunnerID{}, fmt.Errorf("%w: it is not that of a runner", ErrIdentity)
	}
	if len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses) > 0 {
		return forge.RunnerID{}, fmt.Errorf("%w: a runner has no other names", ErrIdentity)
	}
	id, err := forge.ParseID[forge.RunnerID](text)
	if err != nil || id.IsZero() {
		return forge.RunnerID{}, fmt.Errorf("%w: its runner's id is not one", ErrIdentity)
	}
	return id, nil
}

// CheckDaemon returns an error of the kind ErrIdentity unless a certificate is that of a daemon of the cluster.
func CheckDaemon(cert *x509.Certificate, cluster Cluster) error {
	path, err := pathOf(cert, cluster)
	if err == nil && path != daemonPath {
		err = fmt.Errorf("%w: it is not that of a daemon", ErrIdentity)
	}
	return err
}

// pathOf returns what stands behind the cluster's name in the only URI of a certificate of that cluster.
func pathOf(cert *x509.Certificate, cluster Cluster) (string, error) {
	if n := len(cert.URIs); n != 1 {
		return "", fmt.Errorf("%w: it has %d URIs, not one", ErrIdentity, n)
	}
	if _, ok := cert.PublicKey.(ed25519.PublicKey); !ok || cert.IsCA {
		return "", fmt.Errorf("%w: it is no end certificate with an Ed25519 key", ErrIdentity)
	}
	rest, ok := strings.CutPrefix(cert.URIs[0].String(), scheme+"://"+string(cluster)+"/")
	if !ok {
		return "", fmt.Errorf("%w: it is not of the cluster %s", ErrIdentity, cluster)
	}
	return "/" + rest, nil
}

// clusterOf returns the cluster that a CA's certificate names.
func clusterOf(ca *x509.Certificate) (Cluster, error) {
	if !ca.IsCA || !ca.BasicConstraintsValid || len(ca.URIs) != 1 {
		return "", fmt.Errorf("%w: it is not that of a cluster's CA", ErrIdentity)
	}
	name, ok := strings.CutPrefix(ca.URIs[0].String(), scheme+"://")
	if err := Cluster(name).Validate(); !ok || err != nil {
		return "", fmt.Errorf("%w: its CA names no cluster", ErrIdentity)
	}
	return Cluster(name), nil
}
