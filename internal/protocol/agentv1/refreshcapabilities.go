package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// RefreshCapabilitiesV1 asks for a new snapshot (09§97), because the digest in a heartbeat is not the one on record.
type RefreshCapabilitiesV1 struct{}

// NewRefreshCapabilities returns the wire form.
func NewRefreshCapabilities(*forge.RefreshCapabilities) *RefreshCapabilitiesV1 {
	return &RefreshCapabilitiesV1{}
}

// Tag implements protocol.Message.
func (*RefreshCapabilitiesV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRefreshCapabilities, Schema: 1}
}

// Validate implements protocol.Message.
func (*RefreshCapabilitiesV1) Validate() error { return nil }

// Domain implements protocol.Domain.
func (*RefreshCapabilitiesV1) Domain() (forge.Message, error) {
	return &forge.RefreshCapabilities{}, nil
}
