package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of a server.
const (
	// answerWithin bounds a request that is not a stream, and the time that its body may take to come.
	answerWithin = 30 * time.Second
	// unreadWithin is how long the body of a request that is turned away is waited for, after its answer.
	unreadWithin = time.Second
	// writeWithin bounds one write of a stream: a reader that takes nothing for so long is dropped, and may come again.
	writeWithin    = 30 * time.Second
	headersWithin  = 10 * time.Second
	idleWithin     = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	// maxStreams bounds the event streams at a time: each holds a goroutine or three, and a subscription.
	maxStreams = 1024
)

// Config is what a Server is made of. Store, Control, Logs and Events are required.
type Config struct {
	Store   *store.Store
	Control *control.Control
	Logs    *logs.Store
	// Objects are what jobs start from and keep. Nil: there are none.
	Objects *objects.Objects
	// Secrets are those of projects. Nil: there are none.
	Secrets *secrets.Secrets
	// Events decodes a structured frame of a log.
	Events func([]byte) (forge.StepEvent, error)
	// Access knows who shows which token over TCP.
	Access *access.Access
	// Ready checks the parts of the daemon.
	Ready func(ctx context.Context) []api.Check
	// Sessions lists the connections of agents; Status and Protocols say what the daemon's own side is. Nil: not known.
	Sessions  func() []api.Session
	Speaks    func(forge.RunnerID) string // the version of the protocol, of a runner that is connected; nil: not known
	Status    func() api.TransportStatus
	Protocols api.Protocols
	Version   api.Version
	// Fingerprint of the CA, for whoever gets a token.
	Fingerprint string
	Metrics     *telemetry.Metrics // nil: there are none
	Log         *slog.Logger
}

// Server answers requests. Its methods may be called from several goroutines.
type Server struct {
	cfg         Config
	log         *slog.Logger
	mux         *http.ServeMux
	open        map[string]bool // routes by their patterns: whether they are for anybody
	denials     denials
	streams     chan struct{}
	checking    chan struct{} // a token for whoever checks the parts of the daemon
	compressing chan struct{} // likewise, for answers that are compressed
	uploads     chan struct{} // for each request that brings an object
	batches     chan struct{} // many of them
	folders     chan struct{} // for each folder of a tree that is in memory
	verifying   chan struct{} // the store is looked through once at a time
	counts      *telemetry.Counter
	stop        chan struct{} // closed when streams are to end
	stopped     atomic.Bool
}

// New returns a Server.
func New(cfg Config) *Server {
	s := &Server{
		cfg: cfg, log: cfg.Log, streams: make(chan struct{}, maxStreams), checking: make(chan struct{}, 1),
		compressing: make(chan struct{}, maxCompressing), stop: make(chan struct{}),
		uploads: make(chan struct{}, maxUploads), batches: make(chan struct{}, maxBatches), folders: make(chan struct{}, maxFolders),
		verifying: make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.countRequests()
	s.mux = s.routes()
	return s
}

// Stop ends the event streams; their readers come again, to whoever answers then. The caller shuts the servers down
// behind it. It may be called more than once.
func (s *Server) Stop() {
	if s.stopped.CompareAndSwap(false, true) {
		close(s.stop)
	}
}

// Over says how a request came in.
type Over uint8

// The ways in.
const (
	TCP    Over = 1 // shows a token
	Socket Over = 2 // the permissions of the file have let it through
)

// HTTP returns the server for one way in. The caller serves a listener with it and shuts it down.
func (s *Server) HTTP(over Over) *http.Server {
	return &http.Server{
		Handler: s.handler(over), ReadHeaderTimeout: headersWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// handler is what stands before every route.
func (s *Server) handler(over Over) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		// Set for every request: they stay with the connection. A stream moves them.
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(2 * answerWithin))
		_ = control.SetReadDeadline(time.Now().Add(answerWithin))
		defer func() {
			if what := recover(); what != nil {
				s.panicked(answer, r, what)
			}
			s.count(r, answer.status)
		}()
		h := answer.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		in, leave, err := s.admit(over, r)
		if err != nil {
			turnAway(answer)
			if accessProblem(err) != nil {
				s.denied(r, err)
				h.Set("WWW-Authenticate", `Bearer realm="forgeyard"`)
			}
			s.fail(answer, r, err)
			return
		}
		defer leave()
		r = in
		s.mux.ServeHTTP(answer, r)
	})
}

// turnAway sees to it that whoever announces a body and sends none gets an answer at once, and is gone then.
func turnAway(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadWithin))
}

// answer remembers whether an answer was begun.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// panicked answers a request that brought its handler down. It is a bug of ours; the process goes on.
func (s *Server) panicked(a *answer, r *http.Request, what any) {
	if err, ok := what.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(what) // net/http's own way to end a connection
	}
	s.log.Error("a request panicked", "method", r.Method, telemetry.KeyPath, r.URL.Path, telemetry.KeyError, what, "stack", stack())
	if a.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	s.refuse(a, r, api.NewProblem(api.CodeInternal, "the daemon's log says more"))
}
