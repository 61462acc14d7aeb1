package secrets_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAValueRestsEncryptedOnly(t *testing.T) {
	w := newWorld(t)
	w.set("default", "token", canary)
	w.set("default", "token", canary)
	var first, second []byte
	w.must(w.store.View(t.Context(), func(v *store.View) error {
		a, err := v.Secret("default", forge.SecretRef{Name: "token", Version: 1})
		b, err2 := v.Secret("default", forge.SecretRef{Name: "token", Version: 2})
		first, second = a.Sealed, b.Sealed
		return errors.Join(err, err2)
	}))
	if bytes.Equal(first[12:], second[12:]) || bytes.Equal(first[:12], second[:12]) {
		t.Error("the same value is encrypted in the same way twice")
	}
	w.must(filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s has the value", path)
		}
		return err
	}))
	info, err := os.Stat(w.key())
	w.must(err)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v", info.Mode())
	}
}

// moved puts the sealed bytes of one secret into the place of another, changed.
func (w *world) moved(from, to forge.SecretRef, change func([]byte) []byte) {
	w.t.Helper()
	w.must(w.store.Update(w.t.Context(), store.ClassRest, func(tx *store.Tx) error {
		row, err := tx.Secret("default", from)
		if err != nil {
			return err
		}
		_, err = tx.PutSecret("default", to.Name, "mallory", func(uint32) (store.SealedSecret, error) {
			return store.SealedSecret{Key: row.Key, Sealed: change(row.Sealed)}, nil
		})
		return err
	}))
}

func TestARowThatWasChangedOrPutElsewhereDoesNotOpen(t *testing.T) {
	same := func(b []byte) []byte { return b }
	for name, c := range map[string]struct {
		to     string
		change func([]byte) []byte
	}{
		"of another name":    {"other", same},
		"of another version": {"token", same},
		"changed":            {"token", func(b []byte) []byte { b[len(b)-20] ^= 1; return b }},
		"cut":                {"token", func(b []byte) []byte { return b[:5] }},
		"empty":              {"token", func([]byte) []byte { return []byte{} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set("default", "token", canary)
			w.moved(forge.SecretRef{Name: "token"}, forge.SecretRef{Name: c.to}, c.change)
			l := w.accept(w.running("default", forge.TrustTrusted, c.to))
			value, _, err := w.Deliver(t.Context(), l.of, forge.SecretRef{Name: c.to})
			if err == nil || len(value.Reveal()) > 0 || errors.Is(err, secrets.ErrNone) {
				t.Fatalf("it opened: %v", err)
			}
			if !strings.Contains(err.Error(), "set it anew") || strings.Contains(err.Error(), canary) {
				t.Errorf("the error says %v", err)
			}
		})
	}
}

// A row of another project, which the store's interface cannot name the wrong way round.
func TestASecretOfAnotherProjectDoesNotOpenInThisOne(t *testing.T) {
	w := newWorld(t)
	w.set("other", "token", canary)
	w.must(w.store.Update(t.Context(), store.ClassRest, func(tx *store.Tx) error {
		row, err := tx.Secret("other", forge.SecretRef{Name: "token"})
		if err != nil {
			return err
		}
		_, err = tx.PutSecret("default", "token", "mallory", func(uint32) (store.SealedSecret, error) { return row.SealedSecret, nil })
		return err
	}))
	l := w.accept(w.running("default", forge.TrustTrusted, "token"))
	if _, _, err := w.Deliver(t.Context(), l.of, forge.SecretRef{Name: "token"}); err == nil {
		t.Error("it opened")
	}
}

func TestAWrongKeyFileIsRefusedAndSaysWhatToDo(t *testing.T) {
	foreign := func(w *world) {
		other := newWorld(w.t)
		other.set("default", "x", "another value")
		data, err := os.ReadFile(other.key())
		w.must(err)
		w.must(os.WriteFile(w.key(), data, 0o600))
	}
	for name, c := range map[string]struct {
		spoil func(w *world)
		says  string
	}{
		"missing":           {func(w *world) { w.must(os.Remove(w.key())) }, "is missing"},
		"of another daemon": {foreign, "is not the one"},
		"readable":          {func(w *world) { w.must(os.Chmod(w.key(), 0o640)) }, "chmod 600"},
		"a link":            {func(w *world) { w.must(os.Rename(w.key(), w.key()+"2")); w.must(os.Symlink(w.key()+"2", w.key())) }, "no plain file"},
		"cut":               {func(w *world) { w.must(os.Truncate(w.key(), 20)) }, "does not hold a key"},
		"empty":             {func(w *world) { w.must(os.Truncate(w.key(), 0)) }, "does not hold a key"},
		"something else":    {func(w *world) { w.must(os.WriteFile(w.key(), []byte("hunter2 hunter2"), 0o600)) }, "does not hold a key"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (name == "readable" || name == "a link") {
				t.Skip("access lists say who may read")
			}
			w := newWorld(t)
			w.set("default", "token", canary)
			l := w.accept(w.running("default", forge.TrustTrusted, "token"))
			c.spoil(w)
			w.restart()
			_, setErr := w.Set(t.Context(), "default", "token", forge.NewSecret([]byte("new value")), "ann")
			_, _, getErr := w.Deliver(t.Context(), l.of, forge.SecretRef{Name: "token"})
			for _, err := range []error{setErr, getErr, w.Check(t.Context())} {
				var wrong *secrets.KeyError
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
					continue
				}
				for _, leak := range []string{canary, "new value", "hunter2", "fy_secretkey_"} {
					if strings.Contains(err.Error(), leak) {
						t.Errorf("the error has %s: %v", leak, err)
					}
				}
			}
			// Without the key secrets can be seen and removed, and then begun anew.
			if list, _, err := w.List(t.Context(), "default", "", 10); err != nil || len(list) != 1 || len(list[0].Versions) != 1 {
				t.Errorf("listed: %v, %v", list, err)
			}
			w.must(w.Remove(t.Context(), "default", forge.SecretRef{Name: "token"}, "ann"))
			w.must(w.Check(t.Context()))
		})
	}
}

func TestAfterARestartTheSameKeyIsUsed(t *testing.T) {
	w := newWorld(t)
	w.must(w.Check(t.Context()))
	if _, err := os.Stat(w.key()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that nobody needs: %v", err)
	}
	w.set("default", "token", canary)
	w.restart()
	w.must(w.Check(t.Context()))
	l := w.accept(w.running("default", forge.TrustTrusted, "token"))
	if value, _ := w.get(l.of, "token"); value != canary {
		t.Errorf("got %q", value)
	}
}

func TestWhatCannotBeASecretIsRefused(t *testing.T) {
	w := newWorld(t)
	set := func(project, name string, size int) error {
		_, err := w.Set(t.Context(), forge.ProjectName(project), name, forge.NewSecret(bytes.Repeat([]byte("x"), size)), "ann")
		return err
	}
	for _, err := range []error{
		set("default", "token", 0), set("default", "token", forge.MaxSecret+1), set("default", "", 1), set("default", "a//b", 1),
		set("default", "a@2", 1), set("", "token", 1), set("a\x00b", "token", 1),
	} {
		var wrong forge.Problems
		if !errors.As(err, &wrong) {
			t.Errorf("got %v", err)
		}
	}
	w.must(set("default", "token", forge.MaxSecret))
	l := w.accept(w.running("default", forge.TrustTrusted, "token"))
	if value, _ := w.get(l.of, "token"); len(value) != forge.MaxSecret {
		t.Errorf("%d bytes came back", len(value))
	}
}
