package api

import (
	"context"
	"net/http"
)

// AccessTokenRequest asks for a token that lets somebody use this interface: POST tokens.
type AccessTokenRequest struct {
	Name string `json:"name"` // what runs and audit entries say of whoever shows it
	Role string `json:"role"` // viewer, developer, admin
	// Trust is the class of the runs that are submitted with it: untrusted, trusted, protected. Where nothing is said they are
	// trusted.
	Trust     string    `json:"trust,omitempty"`
	ExpiresIn *Duration `json:"expires_in,omitempty"` // it does not expire where nothing is said
}

// AccessToken is a token as an administrator sees it: GET tokens. Token is its text, there once, in the answer to the request that
// made it: only a hash is kept.
type AccessToken struct {
	ID        string `json:"id"`
	Token     string `json:"token,omitempty"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	Trust     string `json:"trust"`        // of the runs that are submitted with it
	State     string `json:"state"`        // good, expired, revoked
	By        string `json:"by,omitempty"` // who made it
	CreatedAt *Time  `json:"created_at,omitempty"`
	ExpiresAt *Time  `json:"expires_at,omitempty"`
	UsedAt    *Time  `json:"used_at,omitempty"` // when it was shown last, give or take an hour
	RevokedAt *Time  `json:"revoked_at,omitempty"`
}

// Caller is who asks: GET whoami.
type Caller struct {
	Name      string `json:"name"` // as runs and audit entries have it
	Role      string `json:"role"`
	Trust     string `json:"trust"` // of the runs that are submitted
	ExpiresAt *Time  `json:"expires_at,omitempty"`
}

// CreateAccessToken makes a token.
func (c *Client) CreateAccessToken(ctx context.Context, request *AccessTokenRequest) (*AccessToken, error) {
	return fetch[AccessToken](ctx, c, call{method: http.MethodPost, path: "tokens", body: request})
}

// AccessTokens lists tokens, newest first, without their texts.
func (c *Client) AccessTokens(ctx context.Context, p Page) (*List[AccessToken], error) {
	return fetch[List[AccessToken]](ctx, c, call{method: http.MethodGet, path: "tokens", query: p.values()})
}

// RevokeAccessToken ends a token for good, and all that is under way with it. It may be repeated. Its name does where an id is
// asked for: the good one's that has it, else the newest one's that had it.
func (c *Client) RevokeAccessToken(ctx context.Context, id string) (*AccessToken, error) {
	return fetch[AccessToken](ctx, c, call{method: http.MethodDelete, path: one("tokens", id)})
}

// WhoAmI returns who the daemon takes the caller for.
func (c *Client) WhoAmI(ctx context.Context) (*Caller, error) {
	return fetch[Caller](ctx, c, call{method: http.MethodGet, path: "whoami"})
}
