package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/disk"
)

const (
	// keyPrefix begins the file of a key, so that scanners for leaked secrets find it.
	keyPrefix = "fy_secretkey_"
	// maxKeyFile bounds what is read of the file.
	maxKeyFile = 256
)

// KeyError says what is wrong with the file of the key, and what to do. It has nothing of what is in the file.
type KeyError struct {
	File string
	What string
	Err  error // or nil
}

func (e *KeyError) Error() string {
	text := "the key of the secrets, " + e.File + ", " + e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *KeyError) Unwrap() error { return e.Err }

// wrongKey is what to do about values that cannot be decrypted.
const wrongKey = "put the right one back from a copy of the folder, or remove the stored secrets and set them anew"

// foreignKey is the error about values of another key, if there are some.
func (s *Secrets) foreignKey(other bool) error {
	if !other {
		return nil
	}
	return &KeyError{File: s.file, What: "is not the one that stored secrets were encrypted with; " + wrongKey}
}

// openKey returns the key, read from its file the first time. Where there is none it is made, if that is wanted and no values
// need another one. The daemon has the folder's lock: nobody else makes one at the same time.
func (s *Secrets) openKey(ctx context.Context, wanted bool) (*key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	k, err := s.readKey()
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.mayMake(ctx, wanted); err != nil {
			return nil, err
		}
		k, err = s.makeKey()
	}
	if err != nil {
		return nil, err
	}
	s.key = k
	return k, nil
}

// mayMake says why no key may be made.
func (s *Secrets) mayMake(ctx context.Context, wanted bool) error {
	any := true
	if wanted {
		err := s.rows.View(ctx, func(v *store.View) (err error) {
			any, err = v.SecretsBesides(digest.Digest{})
			return err
		})
		if err != nil {
			return err
		}
	}
	if any {
		return &KeyError{File: s.file, What: "is missing, and there are secrets that need it; " + wrongKey}
	}
	return nil
}

// readKey reads the file. Its error is fs.ErrNotExist where there is none, else a *KeyError.
func (s *Secrets) readKey() (*key, error) {
	info, err := os.Lstat(s.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, &KeyError{s.file, "cannot be read", err}
	case othersCanRead(info):
		return nil, &KeyError{File: s.file, What: "can be read by others, or is theirs, or is no plain file: run chmod 600 on it; if others may have read it, set every secret anew elsewhere first"}
	}
	f, err := os.Open(s.file)
	if err != nil {
		return nil, &KeyError{s.file, "cannot be read", err}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, &KeyError{s.file, "cannot be read", err}
	}
	defer clear(text)
	return s.parseKey(text)
}

// parseKey takes the file's contents apart. What is wrong with them is not repeated.
func (s *Secrets) parseKey(text []byte) (*key, error) {
	digits, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte(keyPrefix))
	secret := make([]byte, base64.RawURLEncoding.DecodedLen(len(digits)))
	defer clear(secret)
	n, err := base64.RawURLEncoding.Strict().Decode(secret, digits)
	if !ok || err != nil || n != keyBytes {
		return nil, &KeyError{File: s.file, What: "does not hold a key; " + wrongKey}
	}
	return newKey(secret)
}

// makeKey writes a new key, whole or not at all.
func (s *Secrets) makeKey() (*key, error) {
	secret := make([]byte, keyBytes)
	defer clear(secret)
	_, _ = rand.Read(secret) // never fails: it ends the process instead
	text := fmt.Appendf(nil, "%s%s\n", keyPrefix, base64.RawURLEncoding.EncodeToString(secret))
	defer clear(text)
	if err := disk.WriteFile(s.file, text, 0o600); err != nil {
		return nil, &KeyError{s.file, "cannot be made", err}
	}
	s.log.Info("a key for secrets was made; a copy of the database is of no use without it", "path", s.file)
	return newKey(secret)
}
