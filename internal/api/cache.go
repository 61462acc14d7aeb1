package api

import (
	"context"
	"net/http"
)

// KeptCache is a folder, or several, that a job has left for later ones: GET projects/{project}/caches.
type KeptCache struct {
	Project   string `json:"project"`
	Key       string `json:"key"`
	Trust     string `json:"trust"`   // of the runs that find it: untrusted, trusted, protected
	Folders   int    `json:"folders"` // that it has
	Files     uint64 `json:"files"`
	Bytes     uint64 `json:"bytes"`
	CreatedAt *Time  `json:"created_at,omitempty"`
	UsedAt    *Time  `json:"used_at,omitempty"` // last found by a job
}

// CachesRemoved is the answer of DELETE projects/{project}/caches.
type CachesRemoved struct {
	Removed int    `json:"removed"`
	Bytes   uint64 `json:"bytes"` // of their files; the store keeps its objects
}

// CacheFilter says which caches are meant: one of the three.
type CacheFilter struct {
	Key    string // with exactly this key, of each class of trust
	Prefix string // whose keys begin so
	All    bool
}

// Caches lists the caches of a project by key; All need not be said for that.
func (c *Client) Caches(ctx context.Context, project string, f CacheFilter, p Page) (*List[KeptCache], error) {
	query := p.values()
	if f.Key != "" {
		query.Set("key", f.Key)
	}
	if f.Prefix != "" {
		query.Set("prefix", f.Prefix)
	}
	return fetch[List[KeptCache]](ctx, c, call{method: http.MethodGet, path: one("projects", project, "caches"), query: query})
}

// RemoveCaches forgets caches. A job that uses one has it already; later ones do not find it.
func (c *Client) RemoveCaches(ctx context.Context, project string, f CacheFilter) (*CachesRemoved, error) {
	query := Page{}.values()
	if f.Key != "" {
		query.Set("key", f.Key)
	}
	if f.Prefix != "" {
		query.Set("prefix", f.Prefix)
	}
	if f.All {
		query.Set("all", "true")
	}
	return fetch[CachesRemoved](ctx, c, call{method: http.MethodDelete, path: one("projects", project, "caches"), query: query})
}
