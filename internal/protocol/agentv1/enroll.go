package agentv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// Bounds of enrolment.
const (
	MaxToken       = 512
	MaxCertRequest = 8 << 10
	MaxRunnerName  = 64
)

// EnrollV1 asks for a first certificate (09§20), on a connection without a client certificate. It is idempotent by the
// public key: asked twice with one key, a daemon gives the certificate of the same runner.
type EnrollV1 struct {
	Token   *protocol.SecretV1 // at most MaxToken; one-time; absent where only the key is proved, after an expiry
	Name    string             `postcard:"max=64"`   // that the runner would like
	Request []byte             `postcard:"max=8192"` // PKCS #10, DER: its signature proves the key
}

// Tag implements protocol.Message.
func (*EnrollV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeEnroll, Schema: 1} }

// Validate implements protocol.Message. The request itself is parsed by whoever signs it.
func (w *EnrollV1) Validate() error {
	var c protocol.Check
	if w.Token != nil {
		c.Count("token", len(w.Token.Reveal()), 1, MaxToken)
	}
	c.Line("name", w.Name, MaxRunnerName)
	c.Count("request", len(w.Request), 1, MaxCertRequest)
	return c.Err()
}
