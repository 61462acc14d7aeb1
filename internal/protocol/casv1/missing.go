package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// MissingObjectsV1 answers NeedObjects: those of its objects that are missing, in its order (09§89).
type MissingObjectsV1 struct {
	Objects []protocol.RefV1 `postcard:"max=4096"`
}

// Tag implements protocol.Message.
func (*MissingObjectsV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeMissingObjects, Schema: 1}
}

// Validate implements protocol.Message.
func (w *MissingObjectsV1) Validate() error { return checkRefs(w.Objects) }

// Answers reports whether w names nothing but objects of the question, in its order: a peer learns nothing else.
func (w *MissingObjectsV1) Answers(question *NeedObjectsV1) bool {
	next := 0
	for _, object := range w.Objects {
		for next < len(question.Objects) && question.Objects[next] != object {
			next++
		}
		if next == len(question.Objects) {
			return false
		}
		next++
	}
	return true
}
