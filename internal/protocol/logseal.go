package protocol

import "github.com/forgeyard/forgeyard/internal/forge"

// LogSealV1 closes a log: its last sequence number, its bytes and their hash.
type LogSealV1 struct {
	Last  uint64
	Bytes uint64
	Hash  [32]byte
}

// NewLogSeal returns the wire form.
func NewLogSeal(s forge.LogSeal) LogSealV1 {
	return LogSealV1{Last: uint64(s.Last), Bytes: s.Bytes, Hash: s.Hash}
}

// Domain returns the seal.
func (w LogSealV1) Domain() forge.LogSeal {
	return forge.LogSeal{Last: forge.LogSeq(w.Last), Bytes: w.Bytes, Hash: w.Hash}
}
