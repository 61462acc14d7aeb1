// Package admin is the agent's socket for the owner of its machine: what the agent is doing, and a few things that it can be
// told. It is JSON over HTTP on a Unix socket in the state folder, which only the folder's owner can reach; that is all the
// protection it has and needs.
//
//	GET  /status /capabilities /health
//	POST /drain /resume /cleanup
//
// It can do nothing that a signal or a file in the folder could not, and nothing to a job: there is no way in for commands.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// SocketName is the name of the socket in the state folder.
const SocketName = "agent.sock"

// Bounds of the exchange.
const (
	answerWithin = 30 * time.Second
	maxAnswer    = 4 << 20
	maxHeader    = 8 << 10
)

// Agent is what the socket speaks for. Its methods may be called from several goroutines at once.
type Agent interface {
	Status(ctx context.Context) (Status, error)
	Capabilities(ctx context.Context) (forge.Capabilities, error)
	Health(ctx context.Context) (Health, error)
	Drain(ctx context.Context) error
	Resume(ctx context.Context) error
	// CleanUp removes what no attempt needs any more, and says how many workspaces there were.
	CleanUp(ctx context.Context) (CleanUp, error)
}

// Status is what an agent is doing.
type Status struct {
	Runner      string     `json:"runner"`
	Session     string     `json:"session"`
	StateFolder string     `json:"state_folder"`
	Starts      uint64     `json:"starts"`
	Version     string     `json:"version"`
	State       string     `json:"state"`
	Stopping    bool       `json:"stopping"`
	Connection  Connection `json:"connection"`
	Attempts    []Attempt  `json:"attempts"`
	InUse       InUse      `json:"in_use"`
	Total       Amounts    `json:"total"`
	Active      Amounts    `json:"active"` // reserved for the attempts
	Free        Amounts    `json:"free"`
	Pressure    string     `json:"pressure"`
	Certificate time.Time  `json:"certificate_expires"`
	SetAside    []string   `json:"set_aside,omitempty"` // files of the state folder that could not be read
}

// Connection is the way to the daemon.
type Connection struct {
	Endpoint  string    `json:"endpoint"`
	State     string    `json:"state"` // of the newest connection, or of the next one
	Protocol  string    `json:"protocol,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Sequence  uint64    `json:"sequence"` // connections that this process has opened
	LastClose string    `json:"last_close,omitempty"`
	LastError string    `json:"last_error,omitempty"`
}

// Attempt is one attempt of which anything is left.
type Attempt struct {
	ID       string  `json:"id"`
	Job      string  `json:"job"`
	State    string  `json:"state"`
	Stale    bool    `json:"stale,omitempty"`
	LeaseFor float64 `json:"lease_for_seconds"` // until its deadline; below zero it has passed
	LogNext  uint64  `json:"log_next"`          // the frame that the log would have next
	LogBytes uint64  `json:"log_bytes_on_disk"`
}

// InUse counts what is kept on this machine for attempts that it holds, and what is being removed of those that it held.
type InUse struct {
	Objects    int `json:"objects"`              // of outputs, until the daemon has them
	Trees      int `json:"trees"`                // of inputs
	Workspaces int `json:"workspaces_to_remove"` // on their way out
}

// Amounts are resources in plain numbers.
type Amounts struct {
	MilliCPU uint64 `json:"milli_cpu"`
	Memory   uint64 `json:"memory_bytes"`
	Disk     uint64 `json:"disk_bytes"`
	Slots    uint32 `json:"slots"`
}

// AmountsOf returns the numbers of resources.
func AmountsOf(r forge.Resources) Amounts {
	return Amounts{MilliCPU: uint64(r.CPU), Memory: uint64(r.Memory), Disk: uint64(r.Disk), Slots: r.Slots}
}

// Health is how an agent is.
type Health struct {
	Status string  `json:"status"`
	Checks []Check `json:"checks"`
}

// Check is what one check found.
type Check struct {
	Kind   string `json:"kind"`
	Status string `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// HealthOf returns the texts of a report.
func HealthOf(h forge.Health) Health {
	out := Health{Status: h.Status.String()}
	for _, c := range h.Checks {
		out.Checks = append(out.Checks, Check{c.Kind.String(), c.Status.String(), c.Detail})
	}
	return out
}

// CleanUp is what a clean-up has done.
type CleanUp struct {
	Removed int    `json:"removed"`
	Problem string `json:"problem,omitempty"`
}

// Server serves the socket of one agent.
type Server struct {
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

// Listen opens the socket in a state folder of which the caller holds the lock, so a socket that is there is a dead one's.
func Listen(state string, agent Agent, log *slog.Logger) (*Server, error) {
	path := filepath.Join(state, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the local socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the local socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open the local socket: %w", err), l.Close())
	}
	return &Server{listener: l, log: log, http: &http.Server{
		Handler: routes(agent), ReadHeaderTimeout: answerWithin, WriteTimeout: answerWithin, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Serve serves until Close. It starts a goroutine for each connection; Close waits for them.
func (s *Server) Serve() {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.log.Warn("the local socket failed", telemetry.KeyError, err)
	}
}

// Close ends Serve and every exchange.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // it has been asked politely
	}
}

func routes(agent Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", answer(agent.Status))
	mux.HandleFunc("GET /capabilities", answer(agent.Capabilities))
	mux.HandleFunc("GET /health", answer(agent.Health))
	mux.HandleFunc("POST /drain", answer(done(agent.Drain)))
	mux.HandleFunc("POST /resume", answer(done(agent.Resume)))
	mux.HandleFunc("POST /cleanup", answer(agent.CleanUp))
	return mux
}

// done makes an answer of something that has none.
func done(do func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }
}

// problem is the answer that there is none.
type problem struct {
	Error string `json:"error"`
}

func answer[T any](do func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		w.Header().Set("Content-Type", "application/json")
		var body any
		result, err := do(ctx)
		if body = result; err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			body = problem{err.Error()}
		}
		_ = json.NewEncoder(w).Encode(body) // whoever asked is gone
	}
}
