package store_test

import (
	"errors"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Threat S17: a cache is found in its project and its class of trust, by its key first, then by the newest that begins so.
func TestACacheIsFoundByItsKeyInItsClassOfTrust(t *testing.T) {
	y := newYard(t)
	put := func(project forge.ProjectName, trust forge.TrustClass, key, content string) {
		y.later(func(tx *store.Tx) error {
			return tx.PutCache(store.CacheEntry{Project: project, Trust: trust, Key: key, Trees: []forge.TreeRef{{Root: digest.RefOf([]byte(content))}}, Bytes: 1})
		})
	}
	put("p", forge.TrustTrusted, "go-a", "a")
	put("p", forge.TrustTrusted, "go-b_", "b")
	put("p", forge.TrustTrusted, "go-a", "changed")
	put("p", forge.TrustUntrusted, "go-z", "poison")
	put("q", forge.TrustTrusted, "go-z", "foreign")
	for _, c := range []struct {
		key      string
		fallback []string
		want     string
	}{
		{"go-a", nil, "a"},
		{"go-z", nil, ""},
		{"go-z", []string{"go-"}, "b"},
		{"go-z", []string{"go-a", "go-"}, "a"},
		{"go-z", []string{"go_"}, ""},
		{"go-z", []string{"%"}, ""},
		{"x", []string{"y", "z"}, ""},
	} {
		y.see(func(v *store.View) error {
			got, err := v.Cache("p", forge.TrustTrusted, c.key, c.fallback)
			switch {
			case c.want == "" && !errors.Is(err, store.ErrNotFound), c.want != "" && (err != nil || got.Trees[0].Root != digest.RefOf([]byte(c.want))):
				t.Errorf("%s, else %v: %+v, %v; want %q", c.key, c.fallback, got, err, c.want)
			}
			return nil
		})
	}
	y.later(func(tx *store.Tx) error {
		n, err := tx.RemoveCaches("p", "go-a")
		if n != 1 {
			t.Errorf("%d were removed", n)
		}
		return err
	})
	y.see(func(v *store.View) error {
		all, err := v.Caches("p", "", 10)
		if len(all) != 2 || all[0].Key != "go-b_" {
			t.Errorf("left are %+v", all)
		}
		return err
	})
}
