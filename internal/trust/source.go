package trust

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// Source holds the certificate that the next handshake shows. Swapping it changes every listener and dialer that was made
// from it, at once; connections that are open keep the old one. Its methods may be called from several goroutines.
type Source struct {
	current atomic.Pointer[tls.Certificate]
}

// errNoCertificate is for a handshake before the first Set.
var errNoCertificate = errors.New("there is no certificate to show yet")

// NewSource returns a source of cert, which may be nil as long as nobody shakes hands.
func NewSource(cert *tls.Certificate) *Source {
	s := &Source{}
	s.current.Store(cert)
	return s
}

// Set puts another certificate in place. Its Leaf is set.
func (s *Source) Set(cert *tls.Certificate) { s.current.Store(cert) }

// Certificate returns the current one, or nil.
func (s *Source) Certificate() *tls.Certificate { return s.current.Load() }

func (s *Source) forServer(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.get() }

func (s *Source) forClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.get() }

func (s *Source) get() (*tls.Certificate, error) {
	if cert := s.current.Load(); cert != nil {
		return cert, nil
	}
	return nil, errNoCertificate
}

// freshEvery is how often KeepFresh looks at the clock. Timers stand still while a machine sleeps.
const freshEvery = 30 * time.Second

// KeepFresh puts a new certificate into a source when half of the current one's time is over, and tries again until it
// could. It returns when ctx ends. Case T28.
func KeepFresh(ctx context.Context, s *Source, issue func(now time.Time) (*tls.Certificate, error), log *slog.Logger) {
	tick := time.NewTicker(freshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now().UTC()
		if cert := s.Certificate(); cert != nil && now.Before(RenewAt(cert.Leaf)) && !now.Before(cert.Leaf.NotBefore) {
			continue
		}
		cert, err := issue(now)
		if err != nil {
			log.Error("the daemon's certificate could not be renewed", "error", err)
			continue
		}
		s.Set(cert)
		log.Info("the daemon's certificate was renewed", "not_after", cert.Leaf.NotAfter)
	}
}
