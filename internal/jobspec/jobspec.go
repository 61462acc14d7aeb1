// Package jobspec turns a job specification into the bytes that are its identity, and back.
//
// The bytes are strict Postcard of SpecV1. They have one spelling: whatever Decode accepts, Encode writes again byte for
// byte, so a specification has one id and an id one meaning. SpecV1 is frozen: a changed field, order or limit is a new
// version beside it, never an edit (schema_test.go compares a fingerprint).
//
//	bytes  = Postcard(SpecV1), at most forge.MaxSpecBytes; the first byte is the version
//	id     = BLAKE3 of the bytes in the context digest.JobSpec
//
// The package refuses what forge.JobSpec.Validate refuses, in both directions. It decides nothing else, reads and writes
// nothing, and starts no goroutine.
package jobspec

import (
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/postcard"
)

// Version is the version of the specifications that this build writes. It reads no other.
const Version = 1

// What is wrong with the bytes of a specification, besides the errors of package postcard and forge.ErrInvalid.
var (
	ErrTooLarge = errors.New("jobspec: larger than a specification may be")
	ErrVersion  = errors.New("jobspec: of a version that this program does not know")
	ErrMismatch = errors.New("jobspec: the bytes are not those of the id")
)

// maxDepth is how deep SpecV1 nests, so that a decoder of something else would stop early.
const maxDepth = 8

var options = postcard.Options{MaxDepth: maxDepth}

// ID returns the identity of a specification's bytes. It says nothing about whether they can be decoded.
func ID(b []byte) forge.JobSpecID { return forge.JobSpecID(digest.JobSpec.Sum(b)) }

// Encode validates the specification and returns its bytes.
func Encode(spec forge.JobSpec) ([]byte, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("encode job specification: %w", err)
	}
	b, err := options.Marshal(toWire(&spec))
	if err != nil {
		return nil, fmt.Errorf("encode job specification: %w", err)
	}
	if len(b) > forge.MaxSpecBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), forge.MaxSpecBytes)
	}
	return b, nil
}

// Decode reads and validates a specification. It keeps no part of b.
func Decode(b []byte) (forge.JobSpec, error) {
	if len(b) > forge.MaxSpecBytes {
		return forge.JobSpec{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), forge.MaxSpecBytes)
	}
	if len(b) > 0 && b[0] != Version {
		return forge.JobSpec{}, fmt.Errorf("%w: it begins with %d, not %d", ErrVersion, b[0], Version)
	}
	var wire SpecV1
	if err := options.Unmarshal(b, &wire); err != nil {
		return forge.JobSpec{}, fmt.Errorf("decode job specification: %w", err)
	}
	spec := fromWire(&wire)
	if err := spec.Validate(); err != nil {
		return forge.JobSpec{}, fmt.Errorf("decode job specification: %w", err)
	}
	return spec, nil
}

// Open decodes the bytes that came for an id, and refuses with ErrMismatch any that are not exactly the id's (07§228).
// Nothing of them is looked at before.
func Open(id forge.JobSpecID, b []byte) (forge.JobSpec, error) {
	if len(b) > forge.MaxSpecBytes {
		return forge.JobSpec{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), forge.MaxSpecBytes)
	}
	if got := ID(b); got != id {
		return forge.JobSpec{}, fmt.Errorf("%w: they are %v, not %v", ErrMismatch, got, id)
	}
	return Decode(b)
}
