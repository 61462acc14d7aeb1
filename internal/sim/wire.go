package sim

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

// throughWire turns a frame into the bytes that would travel and back, so that the cores also talk as they will.
func throughWire(f forge.Frame) (forge.Frame, error) {
	b, err := wire.EncodeFrame(nil, f, protocol.Current, 0)
	if err != nil {
		return forge.Frame{}, err
	}
	header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(b))
	if err != nil {
		return forge.Frame{}, err
	}
	return wire.DecodeFrame(header, b[protocol.HeaderBytes:])
}
