package store

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Token returns an enrolment token by the hash of its secret, or ErrNotFound.
func (v *View) Token(hash digest.Digest) (Token, error) { return Token{}, errUnbuilt }

// Tokens lists the enrolment tokens, newest first, at most limit.
func (v *View) Tokens(limit int) ([]Token, error) { return nil, errUnbuilt }

// RunnerOfKey returns the runner that a public key was last certified for, or ErrNotFound.
func (v *View) RunnerOfKey(key digest.Digest) (forge.RunnerID, error) {
	return forge.RunnerID{}, errUnbuilt
}

// Certificates lists the certificates of a runner, newest first, at most limit.
func (v *View) Certificates(runner forge.RunnerID, limit int) ([]Certificate, error) {
	return nil, errUnbuilt
}

// CreateToken stores a token. ErrExists where its hash is known.
func (tx *Tx) CreateToken(t Token) error { return errUnbuilt }

// DeleteToken removes a token that was not used. ErrNotFound.
func (tx *Tx) DeleteToken(hash digest.Digest) error { return errUnbuilt }

// RedeemToken uses a token up for a public key and makes its runner with the given id and name. The same key again gets
// the same runner, whatever the time. ErrNotFound, ErrUsed, ErrExpired; ErrExists where the name is taken.
func (tx *Tx) RedeemToken(hash, key digest.Digest, runner forge.RunnerID, name string) (Runner, error) {
	return Runner{}, errUnbuilt
}

// RecordCertificate stores an issued certificate. A second one with the same serial changes nothing.
func (tx *Tx) RecordCertificate(c Certificate) error { return errUnbuilt }
