package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// ResumeV1 ends a drain (09§97).
type ResumeV1 struct{}

// NewResume returns the wire form.
func NewResume(*forge.Resume) *ResumeV1 { return &ResumeV1{} }

// Tag implements protocol.Message.
func (*ResumeV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeResume, Schema: 1} }

// Validate implements protocol.Message.
func (*ResumeV1) Validate() error { return nil }

// Domain implements protocol.Domain.
func (*ResumeV1) Domain() (forge.Message, error) { return &forge.Resume{}, nil }
