//go:build linux

package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Figures are what a program counts, by the name of the figure. Those with labels are left out.
type Figures map[string]float64

// WithFigures is what an agent needs in its Env for its figures to be had.
const WithFigures = "FORGEYARD_AGENT_METRICS_LISTEN=127.0.0.1:0"

// figuresWithin bounds one look.
const figuresWithin = 10 * time.Second

// figuresAt finds where an agent serves its figures in what it has said. The last of several is that of the process that runs.
var figuresAt = regexp.MustCompile(`"metrics":"(http://[^"]+)"`)

// Figures returns what the agent counts. It has to be started with WithFigures.
func (a *Agent) Figures(ctx context.Context) (Figures, error) {
	said, err := os.ReadFile(a.LogFile())
	if err != nil {
		return nil, err
	}
	all := figuresAt.FindAllSubmatch(said, -1)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has not said where its figures are", a.name)
	}
	return figures(ctx, http.DefaultClient, string(all[len(all)-1][1]))
}

// Figures returns what the daemon counts.
func (d *Daemon) Figures(ctx context.Context) (Figures, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.Socket())
	}}
	defer transport.CloseIdleConnections()
	return figures(ctx, &http.Client{Transport: transport}, "http://forgeyard/metrics")
}

func figures(ctx context.Context, client *http.Client, from string) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, figuresWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("figures: %s", answer.Status)
	}
	return parseFigures(answer.Body)
}

func parseFigures(r io.Reader) (Figures, error) {
	all := Figures{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if !ok || name == "#" || strings.Contains(name, "{") {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", name, err)
		}
		all[name] = value
	}
	return all, lines.Err()
}
