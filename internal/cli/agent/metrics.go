package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of the figures' server, which only this machine reaches.
const (
	figuresWithin    = 10 * time.Second
	figuresMaxHeader = 8 << 10
)

// serveMetrics serves the agent's figures until the function that it returns is called, which joins what it has started.
// Nothing is served where no address is set.
func serveMetrics(address string, m *telemetry.Metrics, log *slog.Logger) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for those who want the figures (metrics.listen): %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	server := &http.Server{
		Handler: mux, ReadTimeout: figuresWithin, WriteTimeout: figuresWithin, IdleTimeout: figuresWithin,
		MaxHeaderBytes: figuresMaxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	log.Info("figures are served", "metrics", "http://"+l.Addr().String()+"/metrics")
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), figuresWithin)
		defer cancel()
		err := server.Shutdown(ctx)
		if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, serving)
		}
		return err
	}, nil
}
