package logv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// LogResumeV1 asks an agent to open a log stream from a sequence number (09§86), because frames are missing. It needs
// FeatureLogResume; without it the agent goes on from the last LogAck.
type LogResumeV1 struct {
	Attempt [16]byte
	From    uint64 // from 1
}

// Tag implements protocol.Message.
func (*LogResumeV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeLogResume, Schema: 1} }

// Validate implements protocol.Message.
func (w *LogResumeV1) Validate() error { return checkNext(w.Attempt, w.From) }
