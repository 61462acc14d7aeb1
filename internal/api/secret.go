package api

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// TypeSecret is the media type of a secret's value: its bytes as they are. A value is sent and never comes back.
const TypeSecret = "application/octet-stream"

// Secret is a secret of a project without its value: GET projects/{project}/secrets, and the answer of PUT
// projects/{project}/secrets/{name}, whose body is the value.
type Secret struct {
	Project  string          `json:"project"`
	Name     string          `json:"name"`
	Version  uint32          `json:"version"`  // the newest, which a job gets that names none
	Versions []SecretVersion `json:"versions"` // those that are kept, the newest first; after PUT the one that was made
}

// SecretVersion is one value of a secret, without it.
type SecretVersion struct {
	Version   uint32 `json:"version"`
	By        string `json:"by,omitempty"` // who set it
	CreatedAt *Time  `json:"created_at,omitempty"`
}

// SetSecret stores a value as the newest version of a secret, which is made if it is not there. The caller wipes the value.
func (c *Client) SetSecret(ctx context.Context, project, name string, value forge.Secret) (*Secret, error) {
	body := value.Reveal()
	return fetch[Secret](ctx, c, call{
		method: http.MethodPut, path: one("projects", project, "secrets", name), header: http.Header{"Content-Type": {TypeSecret}},
		raw: bytes.NewReader(body), length: int64(len(body)),
	})
}

// Secrets lists the secrets of a project by name.
func (c *Client) Secrets(ctx context.Context, project string, p Page) (*List[Secret], error) {
	return fetch[List[Secret]](ctx, c, call{method: http.MethodGet, path: one("projects", project, "secrets"), query: p.values()})
}

// DeleteSecret removes a version of a secret, or all of it where the reference has none.
func (c *Client) DeleteSecret(ctx context.Context, project string, ref forge.SecretRef) error {
	r := call{method: http.MethodDelete, path: one("projects", project, "secrets", ref.Name)}
	if ref.Version > 0 {
		r.query = map[string][]string{"version": {strconv.FormatUint(uint64(ref.Version), 10)}}
	}
	return c.do(ctx, r, nil)
}
