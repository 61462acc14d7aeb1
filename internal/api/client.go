package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of a client.
const (
	defaultTimeout = 30 * time.Second
	maxAnswer      = 64 << 20 // bytes of one answer that is not a stream
	maxTokenFile   = 4 << 10
)

// Options says how a client reaches a daemon.
type Options struct {
	Token     forge.Secret  // the bearer token; none over the socket of the daemon's folder
	Timeout   time.Duration // of one request that is not a stream; 30 s where it is zero
	UserAgent string
	// Cleartext lets a token go over plain HTTP to another machine.
	Cleartext bool
	// Stream hears of event streams that break and are taken up again: first why one broke, and nil once it goes on. It is
	// called by the goroutine that reads the stream. Nil allowed.
	Stream func(broke error)
}

// Client asks one daemon. It may be used from several goroutines at once. Errors are *Problem, also where no answer came
// (CodeUnreachable), or the context's.
type Client struct {
	base    string // of the URL, without a slash at its end
	http    *http.Client
	options Options
}

// ReadToken reads a bearer token from a file: one word, without the white space around it.
func ReadToken(path string) (forge.Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return forge.Secret{}, fmt.Errorf("read the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return forge.Secret{}, fmt.Errorf("read the token: %w", err)
	}
	return ParseToken(text, path)
}

// ParseToken reads a bearer token from a text, whose place an error names.
func ParseToken(text []byte, place string) (forge.Secret, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return forge.Secret{}, fmt.Errorf("read the token: %s is empty", place)
	}
	if bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return forge.Secret{}, fmt.Errorf("read the token: %s holds more than a token, which is one word", place)
	}
	return forge.NewSecret(text), nil
}

func errEndpoint(text string) error {
	return fmt.Errorf("%q is no address of a daemon: write http://HOST:PORT, https://HOST or unix:///PATH", clip(text))
}

// NewClient returns a client of the daemon at an endpoint: "http://127.0.0.1:7480", "https://ci.example.org" or
// "unix:///var/lib/forgeyard/http.sock". It connects when it is first used.
func NewClient(endpoint string, o Options) (*Client, error) {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, errEndpoint(endpoint)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c := &Client{options: o, http: &http.Client{Transport: transport, CheckRedirect: noRedirects}}
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		c.base = "http://forgeyard"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", u.Path)
		}
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && (u.Path == "" || u.Path == "/") && u.User == nil:
		if u.Scheme == "http" && !loopback(u.Hostname()) && !o.Cleartext && len(o.Token.Reveal()) > 0 {
			return nil, fmt.Errorf("endpoint %q: the token would travel readable to another machine; use https or a tunnel", endpoint)
		}
		c.base = u.Scheme + "://" + u.Host
	default:
		return nil, errEndpoint(endpoint)
	}
	return c, nil
}

// noRedirects keeps the token from going to wherever an answer points.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Close gives idle connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one request.
type call struct {
	method string
	path   string // below Base, or from the root with a leading slash
	query  url.Values
	header http.Header
	body   any       // sent as JSON, or
	raw    io.Reader // as it is
	length int64     // of raw
}

func (c call) url(base string) string {
	p := c.path
	if !strings.HasPrefix(p, "/") {
		p = Base + "/" + p
	}
	if len(c.query) > 0 {
		p += "?" + c.query.Encode()
	}
	return base + p
}

// do sends a request and reads its whole answer into out, which may be nil.
func (c *Client) do(ctx context.Context, r call, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, errTimeout)
	defer cancel()
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return unreachable(ctx, err)
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	return decode(r, answer, data, out)
}

var errTimeout = errors.New("no answer in time")

// send sends a request and returns the answer of one that was carried out; the caller closes its body.
func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(data)
	}
	if r.raw != nil {
		body = r.raw
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url(c.base), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.raw != nil {
		req.ContentLength = r.length
	}
	if r.body != nil {
		req.Header.Set("Content-Type", TypeJSON)
	}
	c.sign(req)
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if answer.StatusCode >= 300 {
		defer func() { _ = answer.Body.Close() }()
		return nil, problemOf(r, answer)
	}
	return answer, nil
}

// sign says who asks.
func (c *Client) sign(req *http.Request) {
	if c.options.UserAgent != "" {
		req.Header.Set("User-Agent", c.options.UserAgent)
	}
	if token := c.options.Token.Reveal(); len(token) > 0 {
		req.Header.Set("Authorization", "Bearer "+string(token))
	}
}

// unreachable is the error of a request that got no whole answer.
func unreachable(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		err = cause
	case cause != nil:
		return cause
	}
	return NewProblem(CodeUnreachable, "%s", roadless(err))
}
