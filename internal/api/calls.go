package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Page says which part of a list is asked for.
type Page struct {
	Limit  int    // DefaultPage where it is zero; at most MaxPage
	Cursor string // List.Next of the page before
}

func (p Page) values() url.Values {
	v := url.Values{}
	if p.Limit > 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		v.Set("cursor", p.Cursor)
	}
	return v
}

func fetch[T any](ctx context.Context, c *Client, r call) (*T, error) {
	out := new(T)
	if err := c.do(ctx, r, out); err != nil {
		return nil, err
	}
	return out, nil
}

func one(parts ...string) string {
	path := ""
	for i, p := range parts {
		if i > 0 {
			path += "/"
		}
		path += url.PathEscape(p)
	}
	return path
}

// Submit starts a run. With the same key, the same request is carried out once, so that it can be repeated after
// CodeUnreachable, CodeUnavailable and CodeUnknownOutcome.
func (c *Client) Submit(ctx context.Context, request *RunRequest, key string) (*Run, error) {
	r := call{method: http.MethodPost, path: "runs", body: request, header: http.Header{}}
	if key != "" {
		r.header.Set(HeaderIdempotencyKey, key)
	}
	return fetch[Run](ctx, c, r)
}

// RunFilter says which runs are listed.
type RunFilter struct {
	Project string
	State   string
}

// Runs lists runs, newest first, without their jobs.
func (c *Client) Runs(ctx context.Context, f RunFilter, p Page) (*List[Run], error) {
	query := p.values()
	if f.Project != "" {
		query.Set("project", f.Project)
	}
	if f.State != "" {
		query.Set("state", f.State)
	}
	return fetch[List[Run]](ctx, c, call{method: http.MethodGet, path: "runs", query: query})
}

// Run returns a run with its jobs.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	return fetch[Run](ctx, c, call{method: http.MethodGet, path: one("runs", id)})
}

// CancelRun asks for the end of every job of a run, and may be repeated.
func (c *Client) CancelRun(ctx context.Context, id string) (*Run, error) {
	return fetch[Run](ctx, c, call{method: http.MethodPost, path: one("runs", id+":cancel")})
}

// Job returns a job with its attempts and its definition.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	return fetch[Job](ctx, c, call{method: http.MethodGet, path: one("jobs", id)})
}

// CancelJob asks for the end of a job, and may be repeated.
func (c *Client) CancelJob(ctx context.Context, id string) (*Job, error) {
	return fetch[Job](ctx, c, call{method: http.MethodPost, path: one("jobs", id+":cancel")})
}

// ExplainJob says why a job is where it is.
func (c *Client) ExplainJob(ctx context.Context, id string) (*Explanation, error) {
	return fetch[Explanation](ctx, c, call{method: http.MethodGet, path: one("jobs", id, "explain")})
}

// Attempt returns an attempt.
func (c *Client) Attempt(ctx context.Context, id string) (*Attempt, error) {
	return fetch[Attempt](ctx, c, call{method: http.MethodGet, path: one("attempts", id)})
}

// RawLog returns the output of an attempt, byte for byte, from a frame on. With follow it ends when the log does. The
// caller closes it.
func (c *Client) RawLog(ctx context.Context, attempt string, o LogOptions) (io.ReadCloser, error) {
	return c.RawLogFrom(ctx, attempt, o, 0)
}

// RawLogFrom is RawLog without its first bytes: what is left where it broke off. It cannot follow, unless from the first byte.
func (c *Client) RawLogFrom(ctx context.Context, attempt string, o LogOptions, offset int64) (io.ReadCloser, error) {
	query := o.values()
	query.Set("format", "raw")
	r := call{method: http.MethodGet, path: one("attempts", attempt, "log"), query: query}
	if offset > 0 {
		r.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-", offset)}}
	}
	answer, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	if offset > 0 && answer.StatusCode != http.StatusPartialContent {
		_ = answer.Body.Close()
		return nil, NewProblem(CodeUnreadableAnswer, "%s does not answer with a part of itself", r.path)
	}
	return answer.Body, nil
}

// SearchLog looks for a text in a part of a log.
func (c *Client) SearchLog(ctx context.Context, attempt string, q LogQuery) (*LogMatches, error) {
	query := LogOptions{From: q.From}.values()
	query.Set("q", q.Text)
	if q.IgnoreCase {
		query.Set("ignore_case", "true")
	}
	if q.After != "" {
		query.Set("after", q.After)
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return fetch[LogMatches](ctx, c, call{method: http.MethodGet, path: one("attempts", attempt, "log"), query: query})
}

// Runners lists runners by name.
func (c *Client) Runners(ctx context.Context, p Page) (*List[Runner], error) {
	return fetch[List[Runner]](ctx, c, call{method: http.MethodGet, path: "runners", query: p.values()})
}

// Runner returns a runner. Its name does where an id is asked for, here and below.
func (c *Client) Runner(ctx context.Context, id string) (*Runner, error) {
	return fetch[Runner](ctx, c, call{method: http.MethodGet, path: one("runners", id)})
}

// CreateRunner makes a runner and an enrolment token for its machine.
func (c *Client) CreateRunner(ctx context.Context, request *RunnerRequest) (*RunnerCreated, error) {
	return fetch[RunnerCreated](ctx, c, call{method: http.MethodPost, path: "runners", body: request})
}

// RunnerVerb is something that is done to a runner.
type RunnerVerb string

// The verbs. Each may be repeated.
const (
	RunnerDrain   RunnerVerb = "drain"   // gets no new lease
	RunnerResume  RunnerVerb = "resume"  // ends that
	RunnerDisable RunnerVerb = "disable" // stops what it runs, and may not connect
	RunnerEnable  RunnerVerb = "enable"  // ends that
	RunnerRevoke  RunnerVerb = "revoke"  // for good: no certificate of it is accepted any more
)

// SetRunner does something to a runner.
func (c *Client) SetRunner(ctx context.Context, id string, verb RunnerVerb) (*Runner, error) {
	return fetch[Runner](ctx, c, call{method: http.MethodPost, path: one("runners", id+":"+string(verb))})
}

// DeleteRunner removes a runner that holds nothing.
func (c *Client) DeleteRunner(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: one("runners", id)}, nil)
}

// ExplainRunner says why a runner gets no more jobs.
func (c *Client) ExplainRunner(ctx context.Context, id string) (*RunnerExplanation, error) {
	return fetch[RunnerExplanation](ctx, c, call{method: http.MethodGet, path: one("runners", id, "explain")})
}

// CreateToken makes an enrolment token.
func (c *Client) CreateToken(ctx context.Context, request *TokenRequest) (*EnrollmentToken, error) {
	return fetch[EnrollmentToken](ctx, c, call{method: http.MethodPost, path: "enrollment-tokens", body: request})
}

// Tokens lists enrolment tokens without their texts.
func (c *Client) Tokens(ctx context.Context, p Page) (*List[EnrollmentToken], error) {
	return fetch[List[EnrollmentToken]](ctx, c, call{method: http.MethodGet, path: "enrollment-tokens", query: p.values()})
}

// Sessions lists the connections of agents.
func (c *Client) Sessions(ctx context.Context) (*List[Session], error) {
	return fetch[List[Session]](ctx, c, call{method: http.MethodGet, path: "transport/sessions"})
}

// TransportStatus returns the daemon's own side of the transport.
func (c *Client) TransportStatus(ctx context.Context) (*TransportStatus, error) {
	return fetch[TransportStatus](ctx, c, call{method: http.MethodGet, path: "transport/status"})
}

// Protocols returns what the daemon speaks.
func (c *Client) Protocols(ctx context.Context) (*Protocols, error) {
	return fetch[Protocols](ctx, c, call{method: http.MethodGet, path: "transport/protocols"})
}

// Audit lists audit entries, newest first.
func (c *Client) Audit(ctx context.Context, p Page) (*List[AuditEntry], error) {
	return fetch[List[AuditEntry]](ctx, c, call{method: http.MethodGet, path: "audit", query: p.values()})
}

// Version returns what the daemon is.
func (c *Client) Version(ctx context.Context) (*Version, error) {
	return fetch[Version](ctx, c, call{method: http.MethodGet, path: "version"})
}

// Ready reports how the daemon is. Where it is not ready, the error is a *Problem with CodeUnavailable.
func (c *Client) Ready(ctx context.Context) (*Health, error) {
	return fetch[Health](ctx, c, call{method: http.MethodGet, path: "/readyz"})
}
