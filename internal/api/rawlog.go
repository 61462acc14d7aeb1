package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// CopyRawLog writes the output of an attempt to w, byte for byte, as it is stored now. Where the answer breaks off it goes on behind
// the last byte that came, as often as it has to. It cannot follow. The last lines of a log are others when it has grown, so with
// Tail it does not go on.
//
// The error is w's, the context's, or a *Problem.
func (c *Client) CopyRawLog(ctx context.Context, w io.Writer, attempt string, o LogOptions) error {
	o.Follow = false
	s := &stream{client: c, pause: firstPause}
	out := &counter{w: w}
	for {
		before := out.n
		err := c.copyRawLog(ctx, out, attempt, o)
		if out.err != nil {
			return out.err
		}
		if err == nil || !again(err) || o.Tail > 0 {
			return err
		}
		if out.n > before {
			s.whole()
			s.pause = firstPause
		}
		s.broke(err)
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
}

// copyRawLog copies what one answer brings.
func (c *Client) copyRawLog(ctx context.Context, out *counter, attempt string, o LogOptions) error {
	body, err := c.RawLogFrom(ctx, attempt, o, out.n)
	var p *Problem
	if out.n > 0 && errors.As(err, &p) && p.Status == http.StatusRequestedRangeNotSatisfiable {
		return nil // it broke off behind the last byte
	}
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if _, err := io.Copy(out, body); err != nil {
		return unreachable(ctx, fmt.Errorf("the log broke off: %w", err))
	}
	return nil
}

// counter counts what was written, and keeps the error of writing apart from that of reading.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}
