package agentv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// RenewCertificateV1 asks for the next certificate of the same runner (09§21). It is idempotent by the public key.
type RenewCertificateV1 struct {
	Peer    protocol.PeerV1
	Request []byte `postcard:"max=8192"` // PKCS #10, DER
}

// Tag implements protocol.Message.
func (*RenewCertificateV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRenewCertificate, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *RenewCertificateV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *RenewCertificateV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.Count("request", len(w.Request), 1, MaxCertRequest)
	return c.Err()
}
