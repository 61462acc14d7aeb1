package api

import "context"

// RetryRequest asks for a run that tries again what another, which has ended, has left undone: on the same source, by the same
// pipeline, with the secrets of the day. What succeeded and needs nothing of it is taken over.
type RetryRequest struct {
	Run  string   `json:"run"`
	All  bool     `json:"all,omitempty"`  // every job again
	Jobs []string `json:"jobs,omitempty"` // keys of the jobs to try again; absent, without All: those that failed or were cancelled
}

// Retry is Submit with a RetryRequest alone.
func (c *Client) Retry(ctx context.Context, request RetryRequest, key string) (*Run, error) {
	return c.Submit(ctx, &RunRequest{Retry: &request}, key)
}
