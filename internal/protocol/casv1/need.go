package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// MaxObjects bounds the objects of one question (09§88).
const MaxObjects = 4096

// NeedObjectsV1 asks which of these objects the daemon lacks for the project of the stream's attempt, before they are
// uploaded.
type NeedObjectsV1 struct {
	Objects []protocol.RefV1 `postcard:"max=4096"` // at least one
}

// Tag implements protocol.Message.
func (*NeedObjectsV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeNeedObjects, Schema: 1}
}

// Validate implements protocol.Message.
func (w *NeedObjectsV1) Validate() error {
	var c protocol.Check
	c.Count("objects", len(w.Objects), 1, MaxObjects)
	c.In("objects", checkRefs(w.Objects))
	return c.Err()
}

func checkRefs(refs []protocol.RefV1) error {
	var c protocol.Check
	for i := range refs {
		if err := refs[i].Validate(); err != nil {
			c.Item("objects", i, err)
			break
		}
	}
	return c.Err()
}
