package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// The wait before a transfer is taken up again. It begins anew with each try that has moved something.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
)

// ClientConfig is how the agent's half works. Zero values but Link stand for defaults.
type ClientConfig struct {
	// Link returns the newest connection that is at work. It waits for one until ctx ends, whose cause it then returns.
	Link    func(ctx context.Context) (*link.Link, error)
	Memory  int64 // bytes of small objects that were received and are not stored yet, of all attempts
	Streams int   // of each kind at once, of all attempts; at most MaxStreams
	Log     *slog.Logger
}

// defaultClientMemory is enough for some dozens of small objects of the largest size.
const defaultClientMemory = 32 << 20

// Client is the agent's half. All methods may be called by many at once.
type Client struct {
	cfg    ClientConfig
	coder  *coder
	memory memory
	places map[protocol.StreamKind]*semaphore.Weighted
	count  counters

	mu   sync.Mutex
	link *link.Link // that pace belongs to
	pace *pacer
}

// New returns a client.
func New(cfg ClientConfig) *Client {
	if cfg.Memory == 0 {
		cfg.Memory = defaultClientMemory
	}
	if cfg.Streams == 0 {
		cfg.Streams = MaxStreams
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	place := func() *semaphore.Weighted { return semaphore.NewWeighted(int64(cfg.Streams)) }
	return &Client{
		cfg: cfg, coder: newCoder(), memory: memory{all: semaphore.NewWeighted(cfg.Memory)},
		places: map[protocol.StreamKind]*semaphore.Weighted{protocol.StreamCASUpload: place(), protocol.StreamCASDownload: place()},
	}
}

// Figures tells what was moved so far.
func (c *Client) Figures() Figures { return c.count.figures() }

// For returns the daemon's store as an attempt may use it. It costs nothing and needs no end.
func (c *Client) For(of forge.AttemptContext) *Store { return &Store{client: c, of: of} }

// Store is the daemon's store as one attempt may use it: a cas.Store with both ways of copying. Its calls outlive
// connections, and go on until they are done or ctx ends. Their errors are those of package cas, ErrStale, ErrQuota and
// *RefusedError; where ctx ended, they wrap its cause and what went wrong last.
type Store struct {
	client *Client
	of     forge.AttemptContext
}

// pacer returns what paces the writing on a link.
func (c *Client) pacer(l *link.Link) *pacer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		c.link, c.pace = l, newPacer()
	}
	return c.pace
}

// session is one stream of a client.
type session struct {
	*voice
	store *Store
	pace  *pacer
	acks  bool // range states are understood
	end   func()
}

// errNotReady says that a connection is not at work yet, or not any more.
var errNotReady = errors.New("the connection is not at work")

// open opens a stream on the newest connection.
func (s *Store) open(ctx context.Context, kind protocol.StreamKind) (*session, error) {
	l, err := s.client.cfg.Link(ctx)
	if err != nil {
		return nil, &localError{err}
	}
	if state := l.State(); state != forge.ConnActive && state != forge.ConnDraining {
		return nil, errNotReady
	}
	place := s.client.places[kind]
	if err := place.Acquire(ctx, 1); err != nil {
		return nil, &localError{context.Cause(ctx)}
	}
	stream, err := l.Open(ctx, kind, &casv1.StreamHeaderV1{Attempt: s.of.Attempt.ULID, Lease: s.of.Lease.ULID})
	if err != nil {
		place.Release(1)
		return nil, err
	}
	v := newVoice(l, kind, stream, stream)
	stop := context.AfterFunc(ctx, func() { v.reset(protocol.ResetCancelled) })
	return &session{
		voice: v, store: s, pace: s.client.pacer(l), acks: l.Features().Has(protocol.FeatureCASRange),
		end: sync.OnceFunc(func() {
			stop()
			v.reset(protocol.ResetCancelled) // what is closed stays so
			place.Release(1)
		}),
	}, nil
}

// on talks over streams of a kind until one try has come to its end, or none ever will.
func (s *Store) on(ctx context.Context, kind protocol.StreamKind, talk func(context.Context, *session) error) error {
	p := patience{client: s.client}
	for {
		err := s.once(ctx, kind, talk)
		if err == nil {
			return nil
		}
		if err := p.after(ctx, err); err != nil {
			return err
		}
	}
}

func (s *Store) once(ctx context.Context, kind protocol.StreamKind, talk func(context.Context, *session) error) error {
	over, err := s.open(ctx, kind)
	if err != nil {
		return err
	}
	defer over.end()
	if err := talk(ctx, over); err != nil {
		return err
	}
	_ = over.s.Close() // everything was heard already
	return nil
}

// patience is how long the next try has to wait.
type patience struct {
	client *Client
	wait   time.Duration
	moved  uint64
	last   error
}

// after judges an error. nil: a while has passed, and it may be tried again.
func (p *patience) after(ctx context.Context, err error) error {
	var l *localError
	switch {
	case ctx.Err() != nil:
		return p.gaveUp(ctx, err)
	case errors.As(err, &l):
		return l.err
	}
	if err = meaning(err); !passes(err) {
		return err
	}
	p.last = err
	moved := p.client.count.sent.Load() + p.client.count.received.Load()
	if p.wait == 0 || moved != p.moved {
		p.wait, p.moved = firstWait, moved
	}
	timer := time.NewTimer(p.wait/2 + rand.N(p.wait/2)) //nolint:gosec // spread, no secret
	defer timer.Stop()
	p.wait = min(2*p.wait, mostWait)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return p.gaveUp(ctx, err)
	}
}

// gaveUp is the error of a call whose context has ended.
func (p *patience) gaveUp(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if p.last == nil || errors.Is(err, cause) {
		p.last = err
	}
	if errors.Is(p.last, cause) {
		return p.last
	}
	return fmt.Errorf("%w, and before that: %w", cause, meaning(p.last))
}

// meaning turns a reset into the error that it stands for.
func meaning(err error) error {
	var reset *transport.ResetError
	if !errors.As(err, &reset) {
		return err
	}
	switch reset.Code {
	case protocol.ResetNotFound, protocol.ResetNotAuthorized:
		return cas.ErrNotFound
	case protocol.ResetQuota:
		return ErrQuota
	case protocol.ResetStaleLease:
		return ErrStale
	case protocol.ResetStorageFull:
		return fmt.Errorf("the daemon: %w", cas.ErrFull)
	}
	if reset.Code.Retry() == protocol.ResetNever {
		return &RefusedError{Why: reset.Code}
	}
	return err
}

// passes reports whether what went wrong may be right another time, over another stream.
func passes(err error) bool {
	var closed *transport.CloseError
	var reset *transport.ResetError
	return errors.As(err, &closed) || errors.As(err, &reset) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, errInside) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errNoMemory) ||
		errors.Is(err, errNotReady) || errors.Is(err, cas.ErrFull)
}

// unique returns refs without those that came before.
func unique(refs []digest.Ref) []digest.Ref {
	seen := make(map[digest.Ref]struct{}, len(refs))
	once := make([]digest.Ref, 0, len(refs))
	for _, ref := range refs {
		if _, dup := seen[ref]; !dup {
			seen[ref] = struct{}{}
			once = append(once, ref)
		}
	}
	return once
}

// bySize parts objects that travel among others from those that have a stream of their own.
func bySize(refs []digest.Ref) (small, large []digest.Ref) {
	for _, ref := range refs {
		if ref.Bytes <= Small {
			small = append(small, ref)
		} else {
			large = append(large, ref)
		}
	}
	return small, large
}
