// Package bare is quic-go with nothing of ours on it: mutual TLS, streams, and no frame, no gate, no rule. It is the limit
// that figures of the road are measured against, and nothing else may use it.
//
// A Server owns one goroutine for each connection and stream, and joins them in Close.
package bare

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const alpn = "bare"

// Server echoes small messages on streams with two directions, and reads streams with one to their end, after which it
// answers with one byte on a stream of its own.
type Server struct {
	listener *quic.Listener
	keep     Keep
	cancel   context.CancelFunc
	wait     sync.WaitGroup
}

// Keep makes what takes the bytes of one stream of bulk, and is closed when all are there. Errors of it end the stream without an
// answer.
type Keep func() (io.WriteCloser, error)

// Drop keeps nothing.
func Drop() (io.WriteCloser, error) { return dropped{}, nil }

type dropped struct{}

func (dropped) Write(p []byte) (int, error) { return len(p), nil }

func (dropped) Close() error { return nil }

// Credentials is one certificate that stands for both ends and signs itself.
type Credentials struct {
	pair  tls.Certificate
	roots *x509.CertPool
}

// NewCredentials makes one.
func NewCredentials() (*Credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: alpn}, DNSNames: []string{alpn},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return newCredentials(leaf, key), nil
}

// DER returns the certificate and its key, for another process.
func (c *Credentials) DER() (certificate, key []byte, err error) {
	key, err = x509.MarshalPKCS8PrivateKey(c.pair.PrivateKey)
	return c.pair.Certificate[0], key, err
}

// ParseCredentials reads what DER returned, in base64.
func ParseCredentials(certificate, key string) (*Credentials, error) {
	der, err := base64.StdEncoding.DecodeString(certificate)
	if err != nil {
		return nil, err
	}
	keyDER, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	private, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, err
	}
	return newCredentials(leaf, private), nil
}

func newCredentials(leaf *x509.Certificate, key any) *Credentials {
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &Credentials{pair: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, roots: roots}
}

// config is the road's settings, as near to those of package quic as a bare program would have them.
func config() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 5 * time.Second,
		MaxIncomingStreams: 64, MaxIncomingUniStreams: 64,
	}
}

// Listen starts a server on a free port of the loopback.
func Listen(c *Credentials, keep Keep) (*Server, error) {
	listener, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{c.pair}, ClientCAs: c.roots, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{alpn}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
	}, config())
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{listener: listener, keep: keep, cancel: cancel}
	s.wait.Go(func() { s.accept(ctx) })
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends the server and everything on it.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.wait.Wait()
	return err
}

func (s *Server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept(ctx)
		if err != nil {
			return
		}
		s.wait.Go(func() { s.serve(ctx, conn) })
	}
}

// serve is one connection: a goroutine for each kind of stream, and one for each stream.
func (s *Server) serve(ctx context.Context, conn *quic.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseWithError(0, "") })
	defer stop()
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			stream, err := conn.AcceptStream(ctx)
			if err != nil {
				return
			}
			wait.Go(func() { echo(stream) })
		}
	})
	wait.Go(func() {
		for {
			stream, err := conn.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			wait.Go(func() { s.sink(ctx, conn, stream) })
		}
	})
	wait.Wait()
}

// Urgencies of the streams, where 0 goes first: what is small and waited for never queues behind bulk.
const (
	urgent  = 0
	patient = 7
)

func echo(stream *quic.Stream) {
	stream.SetPriority(urgent, true)
	_, _ = io.Copy(stream, stream) // ends with the connection
	_ = stream.Close()
}

// sink reads a stream to its end and says so.
func (s *Server) sink(ctx context.Context, conn *quic.Conn, stream *quic.ReceiveStream) {
	kept, err := s.keep()
	if err != nil {
		return // whoever waits for the answer notices what is missing
	}
	_, err = copyPieces(kept, stream)
	if errors.Join(err, kept.Close()) != nil {
		return
	}
	done, err := conn.OpenUniStreamSync(ctx)
	if err != nil {
		return
	}
	_, _ = done.Write([]byte{1}) // likewise
	_ = done.Close()
}

// Client is one connection to a server.
type Client struct {
	conn   *quic.Conn
	stream *quic.Stream
}

// Dial opens one.
func Dial(ctx context.Context, c *Credentials, addr string) (*Client, error) {
	conn, err := quic.DialAddr(ctx, addr, &tls.Config{
		Certificates: []tls.Certificate{c.pair}, RootCAs: c.roots, ServerName: alpn,
		NextProtos: []string{alpn}, MinVersion: tls.VersionTLS13,
	}, config())
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	stream.SetPriority(urgent, true)
	return &Client{conn: conn, stream: stream}, nil
}

// Close ends it.
func (c *Client) Close() { _ = c.conn.CloseWithError(0, "") }

// Echo sends size bytes and waits until they are back.
func (c *Client) Echo(size int) error {
	message := make([]byte, size)
	if _, err := c.stream.Write(message); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	if _, err := io.ReadFull(c.stream, message); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	return nil
}

// Blank is so many bytes that nobody has written: reading them costs nothing.
func Blank(total int) io.Reader { return io.LimitReader(blank{}, int64(total)) }

type blank struct{}

func (blank) Read(p []byte) (int, error) { return len(p), nil }

// piece is how much is read and written at a time.
const piece = 64 << 10

// copyPieces is io.Copy without the shortcuts that some readers and writers know.
func copyPieces(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, piece))
}

// Bulk writes what it reads to a stream of its own and waits until the server has it all. Several may be under way; each then
// waits for one of the answers.
func (c *Client) Bulk(ctx context.Context, from io.Reader) error {
	stream, err := c.conn.OpenUniStreamSync(ctx)
	if err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	stream.SetPriority(patient, true)
	if _, err := copyPieces(stream, from); err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	if err := stream.Close(); err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	done, err := c.conn.AcceptUniStream(ctx)
	if err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	if _, err := io.ReadFull(done, make([]byte, 1)); err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	return nil
}
