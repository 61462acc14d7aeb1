package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// keyBytes is the size of a key of AES-256.
const keyBytes = 32

// key encrypts and decrypts values. It says what it is by a digest, from which it does not follow.
type key struct {
	id   digest.Digest
	aead cipher.AEAD
}

// newKey makes a key of its bytes, which the caller wipes.
func newKey(secret []byte) (*key, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &key{digest.Of(append([]byte("forgeyard secret key 1\x00"), secret...)), aead}, nil
}

// place is where a value belongs. A value that was sealed for one place does not open at another.
type place struct {
	project forge.ProjectName
	name    string
	version uint32
}

func (p place) ref() forge.SecretRef { return forge.SecretRef{Name: p.name, Version: p.version} }

// bound is the place as associated data: none of its parts can have a zero byte.
func (p place) bound() []byte {
	return []byte("forgeyard secret 1\x00" + string(p.project) + "\x00" + p.name + "\x00" + strconv.FormatUint(uint64(p.version), 10))
}

func (k *key) seal(p place, value forge.Secret) store.SealedSecret {
	return store.SealedSecret{Key: k.id, Sealed: k.aead.Seal(nil, nil, value.Reveal(), p.bound())}
}

// open decrypts a row. The caller wipes the value.
func (k *key) open(p place, row store.SealedSecret) (forge.Secret, error) {
	plain, err := k.aead.Open(nil, nil, row.Sealed, p.bound())
	if err != nil {
		return forge.Secret{}, fmt.Errorf("secret %v of project %s cannot be decrypted: its row was changed since it was stored; set it anew", p.ref(), p.project)
	}
	defer clear(plain)
	return forge.NewSecret(plain), nil
}
