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

// sealed seals nothing: it says what was to be.
func sealed(text string) func(uint32) (store.SealedSecret, error) {
	return func(version uint32) (store.SealedSecret, error) {
		return store.SealedSecret{Key: digest.Digest{7}, Sealed: fmt.Appendf(nil, "%s %d", text, version)}, nil
	}
}

func (y *yard) put(project forge.ProjectName, name string) (made store.SecretVersion) {
	y.t.Helper()
	y.later(func(tx *store.Tx) (err error) {
		made, err = tx.PutSecret(project, name, "ann", sealed(name))
		return err
	})
	return made
}

// secret is what a reference of project p gives; empty where there is none.
func (y *yard) secret(ref forge.SecretRef) (text string) {
	y.t.Helper()
	y.see(func(v *store.View) error {
		row, err := v.Secret("p", ref)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		text = string(row.Sealed)
		return err
	})
	return text
}

func TestANumberOfASecretNeverMeansAnotherValue(t *testing.T) {
	y := newYard(t)
	y.put("p", "a/token")
	y.put("p", "a/token")
	if got := y.secret(forge.SecretRef{Name: "a/token"}); got != "a/token 2" {
		t.Errorf("the newest is %q", got)
	}
	if got := y.secret(forge.SecretRef{Name: "a/token", Version: 1}); got != "a/token 1" {
		t.Errorf("the first is %q", got)
	}
	y.later(func(tx *store.Tx) error { return tx.RemoveSecret("p", forge.SecretRef{Name: "a/token", Version: 2}) })
	if got := y.secret(forge.SecretRef{Name: "a/token"}); got != "a/token 1" {
		t.Errorf("without the second the newest is %q", got)
	}
	y.later(func(tx *store.Tx) error { return tx.RemoveSecret("p", forge.SecretRef{Name: "a/token"}) })
	if got := y.secret(forge.SecretRef{Name: "a/token"}); got != "" {
		t.Errorf("what was removed is %q", got)
	}
	if err := y.try(func(tx *store.Tx) error { return tx.RemoveSecret("p", forge.SecretRef{Name: "a/token"}) }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if made := y.put("p", "a/token"); made.Version != 3 {
		t.Errorf("set again it is version %d", made.Version)
	}
}

func TestSecretsAreListedByNameWithoutTheirValues(t *testing.T) {
	y := newYard(t)
	y.put("p", "b")
	y.put("p", "a/x")
	y.put("p", "b")
	y.put("other", "c")
	y.see(func(v *store.View) error {
		first, next, err := v.Secrets("p", "", 1)
		want := []store.SecretEntry{{Name: "a/x", Versions: []store.SecretVersion{{Version: 1, Actor: "ann", Created: 1_002_000}}}}
		if diff := cmp.Diff(want, first); diff != "" || next != "a/x" || err != nil {
			t.Errorf("next %q, %v, -want +got\n%s", next, err, diff)
		}
		rest, next, err := v.Secrets("p", next, 10)
		want = []store.SecretEntry{{Name: "b", Versions: []store.SecretVersion{
			{Version: 2, Actor: "ann", Created: 1_003_000}, {Version: 1, Actor: "ann", Created: 1_001_000},
		}}}
		if diff := cmp.Diff(want, rest); diff != "" || next != "" || err != nil {
			t.Errorf("next %q, %v, -want +got\n%s", next, err, diff)
		}
		return nil
	})
}

func TestSecretsAndTheirVersionsAreBounded(t *testing.T) {
	y := newYard(t)
	for range store.MaxSecretVersions + 1 {
		y.put("p", "a")
	}
	if y.secret(forge.SecretRef{Name: "a", Version: 1}) != "" || y.secret(forge.SecretRef{Name: "a", Version: 2}) == "" {
		t.Error("not the oldest version went")
	}
	y.later(func(tx *store.Tx) error {
		for i := range store.MaxSecretNames - 1 {
			if _, err := tx.PutSecret("p", fmt.Sprintf("n%d", i), "ann", sealed("")); err != nil {
				return err
			}
		}
		return nil
	})
	err := y.try(func(tx *store.Tx) error {
		_, err := tx.PutSecret("p", "more", "ann", sealed(""))
		return err
	})
	if !errors.Is(err, store.ErrSecrets) {
		t.Errorf("one past the bound: %v", err)
	}
	y.put("p", "a") // one that is there can be set
	y.put("q", "more")
}

func TestAValueThatCannotBeSealedLeavesNothing(t *testing.T) {
	y := newYard(t)
	broken := errors.New("no key")
	err := y.try(func(tx *store.Tx) error {
		_, err := tx.PutSecret("p", "a", "ann", func(uint32) (store.SealedSecret, error) { return store.SealedSecret{}, broken })
		return err
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if made := y.put("p", "a"); made.Version != 1 {
		t.Errorf("the first version is %d", made.Version)
	}
	y.see(func(v *store.View) error {
		any, err := v.SecretsBesides(digest.Digest{})
		other, err2 := v.SecretsBesides(digest.Digest{7})
		if !any || other {
			t.Errorf("any %v, of another key %v", any, other)
		}
		return errors.Join(err, err2)
	})
}
