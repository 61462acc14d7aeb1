package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

const certBlock = "CERTIFICATE"

// maxCertificates bounds the certificates in one file.
const maxCertificates = 16

var errCertFile = errors.New("it does not hold certificates in PEM form, and those alone")

func encodeCertificates(certs ...*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, cert := range certs {
		_ = pem.Encode(&text, &pem.Block{Type: certBlock, Bytes: cert.Raw}) // a buffer takes everything
	}
	return text.Bytes()
}

// parseCertificates reads 1 to maxCertificates certificates.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := bytes.TrimSpace(text); len(rest) > 0; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != certBlock || len(certs) == maxCertificates {
			return nil, errCertFile
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errCertFile
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errCertFile
	}
	return certs, nil
}
