package trust

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Cluster names an installation: the part of every identity that says whose it is. It is chosen when the CA is made and
// never changes. It is 1 to MaxCluster lower-case letters, digits and -, and begins and ends with none of the latter.
type Cluster string

// MaxCluster bounds the name, so that it can be one label of a DNS name.
const MaxCluster = 63

// ErrCluster is the kind of error for a name that is none.
var ErrCluster = errors.New("no name of a cluster")

// lower is base32 as it can be read aloud: no capitals, no 0, 1, 8 or 9.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewCluster makes a name that no other installation has.
func NewCluster() Cluster {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails: it ends the process instead
	return Cluster("fy-" + lower.EncodeToString(random[:]))
}

// Validate checks the form.
func (c Cluster) Validate() error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if c == "" || len(c) > MaxCluster || strings.ContainsFunc(string(c), bad) || c[0] == '-' || c[len(c)-1] == '-' {
		return fmt.Errorf("%w: it is 1 to %d of a-z, 0-9 and -, with no - at its ends", ErrCluster, MaxCluster)
	}
	return nil
}

// ServerName is the DNS name that every daemon's certificate of the cluster has, beside those of its host. Agents that
// were given no other name ask for this one, so that a daemon may move to another address. Nobody can resolve it.
func (c Cluster) ServerName() string { return "daemon." + string(c) + ".forgeyard.internal" }
