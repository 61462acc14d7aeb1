package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Scope is what one attempt may have and give: the store behind Serve. It is asked about every object. Its errors say what
// the peer hears: cas.ErrNotFound of what is not there and of what is not for this attempt, ErrStale, ErrQuota, cas.ErrFull,
// a *cas.MismatchError, a *cas.CorruptError. Any other ends the stream, and the peer comes again later.
type Scope interface {
	cas.Store
	// Part continues an object that is too large for one Put, or begins it. ErrPresent: there is nothing to send. ErrBusy:
	// another stream is at it. Should another stream of this attempt ask for the same object, yield is called, at most once
	// and from anywhere; the part is then to be closed soon.
	Part(ctx context.Context, ref digest.Ref, yield func()) (Part, error)
}

// Part is an object that arrives in pieces, in order. One goroutine uses it.
type Part interface {
	// Held is how many bytes from the first on are there.
	Held() uint64
	io.Writer
	// Commit verifies the object and stores it. Close is still to be called.
	Commit(ctx context.Context) error
	// Close keeps what was written for the next Part of the object, unless it was committed.
	Close() error
}

// ServerConfig is how much the daemon's half may use. Zero values stand for defaults.
type ServerConfig struct {
	Memory     int64 // bytes of all connections that were received and are not stored yet
	ConnMemory int64 // of one connection
	Streams    int   // of each kind on one connection, at most MaxStreams by the protocol
	Log        *slog.Logger
}

// Defaults of a ServerConfig.
const (
	defaultMemory     = 256 << 20
	defaultConnMemory = 16 << 20
)

// Server is the daemon's half. All methods may be called by many at once.
type Server struct {
	cfg    ServerConfig
	coder  *coder
	memory *semaphore.Weighted
	count  counters
}

// NewServer returns a server.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Memory == 0 {
		cfg.Memory = defaultMemory
	}
	if cfg.ConnMemory == 0 {
		cfg.ConnMemory = min(defaultConnMemory, cfg.Memory)
	}
	if cfg.Streams == 0 {
		cfg.Streams = MaxStreams
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, coder: newCoder(), memory: semaphore.NewWeighted(cfg.Memory)}
}

// Figures tells what was moved so far.
func (s *Server) Figures() Figures { return s.count.figures() }

// Connection is one agent's connection, with what its streams share.
type Connection struct {
	server *Server
	link   *link.Link
	pace   *pacer
	memory memory
	places map[protocol.StreamKind]*semaphore.Weighted
}

// Connection returns what the streams of a link share. It needs no end.
func (s *Server) Connection(l *link.Link) *Connection {
	place := func() *semaphore.Weighted { return semaphore.NewWeighted(int64(s.cfg.Streams)) }
	return &Connection{
		server: s, link: l, pace: newPacer(),
		memory: memory{own: semaphore.NewWeighted(s.cfg.ConnMemory), all: s.memory},
		places: map[protocol.StreamKind]*semaphore.Weighted{protocol.StreamCASUpload: place(), protocol.StreamCASDownload: place()},
	}
}

// Serve carries one stream to its end, and ends both of its directions. When ctx ends, the peer is told to come again later.
// The error says why the stream did not end well, for the log; it was dealt with.
func (c *Connection) Serve(ctx context.Context, in *link.Inbound, scope Scope) error {
	place := c.places[in.Kind]
	if place == nil || in.Send == nil {
		in.Reset(protocol.ResetMalformed)
		return errTurn
	}
	if !place.TryAcquire(1) {
		in.Reset(protocol.ResetResumeLater)
		return errStreams
	}
	defer place.Release(1)
	defer context.AfterFunc(ctx, func() { in.Reset(protocol.ResetResumeLater) })()
	v := newVoice(c.link, in.Kind, in.Receive, in.Send)
	var err error
	if in.Kind == protocol.StreamCASUpload {
		err = c.takeUploads(ctx, v, scope)
	} else {
		err = c.giveDownloads(ctx, v, scope)
	}
	return c.ended(ctx, v, err)
}

var errStreams = errors.New("more streams of objects than one connection may have")

// ended ends a stream as its error asks.
func (c *Connection) ended(ctx context.Context, v *voice, err error) error {
	if err == nil {
		_ = v.s.Close() // the peer has heard all, and may have left
		v.r.Stop(protocol.ResetCancelled)
		return nil
	}
	v.reset(codeOf(err).Outward())
	c.server.count.resets.Add(1)
	if !lost(err) && ctx.Err() == nil {
		c.server.cfg.Log.Warn("a stream of objects was ended", slog.Any("peer", c.link.Peer().Addr), slog.Any("error", err))
	}
	return err
}

// lost reports whether an error is the peer's or the road's way of ending.
func lost(err error) bool {
	var closed *transport.CloseError
	var reset *transport.ResetError
	return errors.As(err, &closed) || errors.As(err, &reset)
}

// codeOf is the code with which a stream is reset after an error.
func codeOf(err error) protocol.ResetCode {
	var f *fault
	var v *protocol.Violation
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &v) && v.Severity() == protocol.SeverityStream:
		return v.Reset()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return protocol.ResetTimeout
	case errors.Is(err, ErrStale):
		return protocol.ResetStaleLease
	default:
		return protocol.ResetResumeLater
	}
}

// answer tells the peer how an object ended. An error that says nothing about the object is returned.
func answer(v *voice, ref digest.Ref, err error) error {
	outcome, ok := outcomeOf(err)
	if !ok {
		return err
	}
	return v.say(&casv1.CasResultV1{Object: protocol.NewRef(ref), Outcome: outcome})
}
