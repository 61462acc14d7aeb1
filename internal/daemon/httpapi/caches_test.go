package httpapi

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestCachesAreListedAndRemovedByTheirKeys(t *testing.T) {
	w := newWorld(t)
	w.must(w.store.Update(w.ctx, store.ClassRest, func(tx *store.Tx) error {
		for _, c := range []store.CacheEntry{
			{Project: "default", Trust: forge.TrustTrusted, Key: "go-1", Trees: []forge.TreeRef{{Root: digest.RefOf([]byte("a")), Files: 3, Bytes: 40}, {}}, Bytes: 40},
			{Project: "default", Trust: forge.TrustUntrusted, Key: "go-1", Trees: []forge.TreeRef{{Root: digest.RefOf([]byte("b")), Files: 1, Bytes: 2}}, Bytes: 2},
			{Project: "default", Trust: forge.TrustTrusted, Key: "npm:x", Trees: []forge.TreeRef{{Root: digest.RefOf([]byte("c")), Files: 1, Bytes: 7}}, Bytes: 7},
			{Project: "other", Trust: forge.TrustTrusted, Key: "go-1", Trees: []forge.TreeRef{{Root: digest.RefOf([]byte("d")), Files: 1, Bytes: 1}}, Bytes: 1},
		} {
			if err := tx.PutCache(c); err != nil {
				return err
			}
		}
		return nil
	}))
	var seen []api.KeptCache
	for page := (api.Page{Limit: 1}); ; {
		list, err := w.client.Caches(w.ctx, "default", api.CacheFilter{}, page)
		w.must(err)
		seen = append(seen, list.Items...)
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	if len(seen) != 3 || seen[0].Trust != "untrusted" || seen[1].Key != "go-1" || seen[1].Folders != 1 || seen[1].Files != 3 || seen[1].Bytes != 40 ||
		seen[1].UsedAt == nil || seen[2].Key != "npm:x" {
		t.Fatalf("%+v", seen)
	}
	if list, err := w.client.Caches(w.ctx, "default", api.CacheFilter{Prefix: "npm:"}, api.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("by the beginning: %+v, %v", list, err)
	}
	for _, bad := range []api.CacheFilter{{}, {All: true, Key: "go-1"}, {Key: "go-1", Prefix: "go"}} {
		if _, err := w.client.RemoveCaches(w.ctx, "default", bad); w.problem(err).Code != api.CodeMalformed {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	gone, err := w.client.RemoveCaches(w.ctx, "default", api.CacheFilter{Key: "go-1"})
	if err != nil || gone.Removed != 2 || gone.Bytes != 42 {
		t.Errorf("by key: %+v, %v", gone, err)
	}
	if _, err := w.client.RemoveCaches(w.ctx, "default", api.CacheFilter{Key: "go-1"}); w.problem(err).Code != api.CodeNotFound {
		t.Errorf("again: %v", err)
	}
	if gone, err = w.client.RemoveCaches(w.ctx, "default", api.CacheFilter{All: true}); err != nil || gone.Removed != 1 {
		t.Errorf("all: %+v, %v", gone, err)
	}
	if list, err := w.client.Caches(w.ctx, "other", api.CacheFilter{}, api.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("another project: %+v, %v", list, err)
	}
}
