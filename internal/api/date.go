package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Date asks for the daemon's time of day, exact to a second. It needs no token.
func (c *Client) Date(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, errTimeout)
	defer cancel()
	answer, err := c.send(ctx, call{method: http.MethodGet, path: "/healthz"})
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}, errors.New("the daemon's answer has no date")
	}
	return date, nil
}
