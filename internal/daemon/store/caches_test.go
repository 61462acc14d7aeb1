package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		gone, err := tx.RemoveCaches(store.CacheFilter{Project: "p", Key: "go-a"})
		if len(gone) != 1 || gone[0].Key != "go-a" {
			t.Errorf("removed were %+v", gone)
		}
		return err
	})
	y.see(func(v *store.View) error {
		all, err := v.Caches(store.CacheFilter{Project: "p"})
		if len(all) != 2 || all[0].Key != "go-b_" {
			t.Errorf("left are %+v", all)
		}
		return err
	})
}

// Pages end between the classes of one key as well, and a beginning is taken as it is written.
func TestCachesAreListedInPages(t *testing.T) {
	y := newYard(t)
	y.later(func(tx *store.Tx) error {
		for _, key := range []string{"a%b", "a_c", "abc", "ü-1", "ü-2"} {
			for _, trust := range []forge.TrustClass{forge.TrustUntrusted, forge.TrustTrusted} {
				if err := tx.PutCache(store.CacheEntry{Project: "p", Trust: trust, Key: key, Trees: []forge.TreeRef{{}}, Bytes: 1}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	y.see(func(v *store.View) error {
		var seen []string
		for f := (store.CacheFilter{Project: "p", Limit: 3}); ; {
			page, err := v.Caches(f)
			if err != nil {
				return err
			}
			for _, c := range page {
				seen = append(seen, fmt.Sprintf("%s %v", c.Key, c.Trust))
				f.After, f.AfterTrust = c.Key, c.Trust
			}
			if len(page) < 3 {
				break
			}
		}
		want := []string{"a%b untrusted", "a%b trusted", "a_c untrusted", "a_c trusted", "abc untrusted", "abc trusted", "ü-1 untrusted", "ü-1 trusted", "ü-2 untrusted", "ü-2 trusted"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
		for prefix, n := range map[string]int{"a": 6, "a%": 2, "a_": 2, "ü-": 4, "ü-2": 2, "A": 0} {
			if page, err := v.Caches(store.CacheFilter{Project: "p", Prefix: prefix}); err != nil || len(page) != n {
				t.Errorf("%q: %d, %v", prefix, len(page), err)
			}
		}
		return nil
	})
	left := 10
	for _, c := range []struct {
		prefix string
		n      int
	}{{"a_", 2}, {"A", 0}, {"ü-2", 2}, {"", 6}} {
		y.later(func(tx *store.Tx) error {
			gone, err := tx.RemoveCaches(store.CacheFilter{Project: "p", Prefix: c.prefix, After: "x", Limit: 1})
			if len(gone) != c.n {
				t.Errorf("of %q %d were removed", c.prefix, len(gone))
			}
			return err
		})
		left -= c.n
		y.see(func(v *store.View) error {
			all, err := v.Caches(store.CacheFilter{Project: "p"})
			if len(all) != left {
				t.Errorf("without %q there are %d, not %d", c.prefix, len(all), left)
			}
			return err
		})
	}
}
