package link

import (
	"log/slog"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Defaults of a Config.
const (
	defaultFramesPerSecond = 500
	defaultFrameBurst      = 2000
	defaultWriteWithin     = 10 * time.Second
	defaultHelloWithin     = protocol.RegisterWithin
	defaultLinger          = time.Second
	defaultHeaders         = 128 // as many as a peer may open at all: a silent stream holds up no other
)

// defaultStreams is how many streams of a kind may be open at once. Logs have a direction of their own; of the streams
// with two directions that a road admits, 64, objects leave some to everything else.
var defaultStreams = map[protocol.StreamKind]int{
	protocol.StreamLog:         64,
	protocol.StreamCASDownload: 24,
	protocol.StreamCASUpload:   24,
	protocol.StreamSecret:      8,
}

// Config is how a link behaves. Zero values stand for defaults.
type Config struct {
	Role     protocol.Role // of this end, where it connects; not used where it answers
	Terms    protocol.Terms
	Software string       // name and version of this program, for people
	Log      *slog.Logger // nil: silence
	Observer Observer     // nil: nobody

	FramesPerSecond int                         // control frames from the peer, on average
	FrameBurst      int                         // and at once
	Streams         map[protocol.StreamKind]int // of the peer, open at once; a kind that is absent has no place
	Headers         int                         // streams whose header is awaited at once
	WriteWithin     time.Duration               // for the peer to take one frame
	HelloWithin     time.Duration               // for the peer to say hello, or to answer it
	Linger          time.Duration               // for the peer to read the last frame before a close
}

// Observer hears what a peer does wrong, and counts. Its methods are called from the goroutines of the link and return at
// once.
type Observer interface {
	// Violation is told of every fault of the peer. Where v.Severity() is SeveritySecurity, an audit event is due. It is
	// called before the stream or the connection ends.
	Violation(l *Link, v *protocol.Violation)
	// Received and Sent count frames of the control stream with their headers.
	Received(tag protocol.Tag, bytes int)
	Sent(tag protocol.Tag, bytes int)
	// Opened counts streams of the peer that were handed to Accept.
	Opened(kind protocol.StreamKind)
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Violation(*Link, *protocol.Violation) {}
func (nobody) Received(protocol.Tag, int)           {}
func (nobody) Sent(protocol.Tag, int)               {}
func (nobody) Opened(protocol.StreamKind)           {}

func (c Config) withDefaults() Config {
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	within := func(n *time.Duration, d time.Duration) {
		if *n == 0 {
			*n = d
		}
	}
	or(&c.FramesPerSecond, defaultFramesPerSecond)
	or(&c.FrameBurst, defaultFrameBurst)
	or(&c.Headers, defaultHeaders)
	within(&c.WriteWithin, defaultWriteWithin)
	within(&c.HelloWithin, defaultHelloWithin)
	within(&c.Linger, defaultLinger)
	if c.Streams == nil {
		c.Streams = defaultStreams
	}
	if c.Terms.Versions == nil {
		c.Terms = protocol.OwnTerms()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	return c
}
