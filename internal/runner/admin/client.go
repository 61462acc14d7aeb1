package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrNotRunning is returned where no agent answers on a state folder.
var ErrNotRunning = errors.New("no agent runs on this state folder")

// Client asks the agent of a state folder. Its methods may be called from several goroutines at once.
type Client struct {
	state string
	http  http.Client
}

// NewClient returns a client for the agent of a state folder. Close it.
func NewClient(state string) *Client {
	path := filepath.Join(state, SocketName)
	return &Client{state: state, http: http.Client{
		Timeout: answerWithin,
		Transport: &http.Transport{
			MaxIdleConns: 1,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", path)
			},
		},
	}}
}

// Close gives the connection back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks what the agent is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "status")
}

// Capabilities asks what the agent last found that the machine can do.
func (c *Client) Capabilities(ctx context.Context) (forge.Capabilities, error) {
	return ask[forge.Capabilities](ctx, c, http.MethodGet, "capabilities")
}

// Health asks how the agent is; it looks again.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return ask[Health](ctx, c, http.MethodGet, "health")
}

// Drain makes the agent take nothing new.
func (c *Client) Drain(ctx context.Context) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "drain")
	return err
}

// Resume ends that.
func (c *Client) Resume(ctx context.Context) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "resume")
	return err
}

// CleanUp removes what no attempt needs any more.
func (c *Client) CleanUp(ctx context.Context) (CleanUp, error) {
	return ask[CleanUp](ctx, c, http.MethodPost, "cleanup")
}

func ask[T any](ctx context.Context, c *Client, method, what string) (T, error) {
	var result T
	request, err := http.NewRequestWithContext(ctx, method, "http://agent/"+what, nil)
	if err != nil {
		return result, err
	}
	response, err := c.http.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return result, fmt.Errorf("%w: %s", ErrNotRunning, c.state)
	}
	if err != nil {
		return result, fmt.Errorf("ask the agent for its %s: %w", what, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return result, fmt.Errorf("ask the agent for its %s: %w", what, err)
	}
	if response.StatusCode != http.StatusOK {
		var p problem
		if json.Unmarshal(body, &p) != nil || p.Error == "" {
			p.Error = response.Status
		}
		return result, fmt.Errorf("the agent answers: %s", p.Error)
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return result, fmt.Errorf("read the agent's answer: %w", err)
	}
	return result, nil
}
