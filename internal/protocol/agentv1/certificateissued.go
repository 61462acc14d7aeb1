package agentv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// CertificateIssuedV1 answers RenewCertificate. The runner's id does not change.
type CertificateIssuedV1 struct {
	Certificate CertificateV1
}

// Tag implements protocol.Message.
func (*CertificateIssuedV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeCertificateIssued, Schema: 1}
}

// Validate implements protocol.Message.
func (w *CertificateIssuedV1) Validate() error {
	var c protocol.Check
	c.In("certificate", w.Certificate.Validate())
	return c.Err()
}
