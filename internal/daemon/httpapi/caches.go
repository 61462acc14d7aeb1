package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// cacheFilter reads which caches of a project a request means.
func cacheFilter(r *http.Request) (f store.CacheFilter, err error) {
	query := r.URL.Query()
	f = store.CacheFilter{Project: forge.ProjectName(r.PathValue("project")), Key: query.Get("key"), Prefix: query.Get("prefix")}
	if f.Key != "" && f.Prefix != "" {
		return f, api.NewProblem(api.CodeMalformed, "say key= or prefix=, not both")
	}
	return f, f.Project.Validate()
}

// listCaches lists the caches of a project. A cursor is the class of trust and the key of the last one.
func (s *Server) listCaches(r *http.Request) (any, error) {
	f, err := cacheFilter(r)
	if err != nil {
		return nil, err
	}
	if f.Limit, err = limit(r); err != nil {
		return nil, err
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		trust, key, ok := strings.Cut(cursor, ":")
		n, err := strconv.ParseUint(trust, 10, 8)
		if !ok || err != nil {
			return nil, api.NewProblem(api.CodeMalformed, "cursor %q is none that was given out", clip(cursor))
		}
		f.After, f.AfterTrust = key, forge.TrustClass(n)
	}
	out := api.List[api.KeptCache]{Items: []api.KeptCache{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		found, err := v.Caches(f)
		for i := range found {
			out.Items = append(out.Items, cacheOf(&found[i]))
		}
		if n := len(found); n == f.Limit {
			out.Next = fmt.Sprintf("%d:%s", found[n-1].Trust, found[n-1].Key)
		}
		return err
	})
	return out, err
}

func cacheOf(c *store.CacheEntry) api.KeptCache {
	out := api.KeptCache{
		Project: string(c.Project), Key: c.Key, Trust: c.Trust.String(), Bytes: uint64(c.Bytes),
		CreatedAt: api.TimeOf(c.Created), UsedAt: api.TimeOf(c.Used),
	}
	for _, t := range c.Trees {
		if t != (forge.TreeRef{}) {
			out.Folders++
			out.Files += t.Files
		}
	}
	return out
}

// deleteCaches forgets the caches that are named; all only where that is said.
func (s *Server) deleteCaches(r *http.Request) (any, error) {
	f, err := cacheFilter(r)
	if err != nil {
		return nil, err
	}
	all, err := flag(r, "all")
	if err != nil {
		return nil, err
	}
	if all == (f.Key != "" || f.Prefix != "") {
		return nil, api.NewProblem(api.CodeMalformed, "say which caches: key=, prefix= or all=true, one of them")
	}
	var out api.CachesRemoved
	err = s.cfg.Store.Update(r.Context(), store.ClassRest, func(tx *store.Tx) error {
		gone, err := tx.RemoveCaches(f)
		if err != nil || len(gone) == 0 {
			return err
		}
		out = api.CachesRemoved{Removed: len(gone)}
		for i := range gone {
			out.Bytes += uint64(gone[i].Bytes)
		}
		return tx.AppendAudit(store.AuditEvent{
			Kind: "cache.remove", Actor: actor(r.Context()), Subject: string(f.Project), Detail: fmt.Sprintf("%d, the first %q", len(gone), clip(gone[0].Key)),
		})
	})
	if err == nil && out.Removed == 0 && f.Key != "" {
		return nil, api.NewProblem(api.CodeNotFound, "project %s has no cache with the key %q", clip(string(f.Project)), clip(f.Key))
	}
	return out, err
}
