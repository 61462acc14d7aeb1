package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CompletionV1 asks the daemon to accept the result of an attempt (09§75). It is sent with the same message id, in the
// envelope and here, until a CompletionAck comes.
type CompletionV1 struct {
	Context    protocol.ContextV1
	Message    [16]byte
	Result     ResultV1
	CancelSeen bool
	Capture    ClassV1
	Outputs    []OutputV1 `postcard:"max=512"`
	Log        protocol.LogSealV1
	Hash       [32]byte // over all of the above
}

// ResultV1 is how the workload ended.
type ResultV1 struct {
	Class    ClassV1
	ExitCode uint8
	Signal   uint8
	Limit    uint64 // that was passed: bytes, processes or milliseconds
	Peak     uint64
	Duration uint64         // nanoseconds
	Steps    []StepResultV1 `postcard:"max=256"`
}

// StepResultV1 is how one step ended.
type StepResultV1 struct {
	Index    uint16
	Class    ClassV1
	ExitCode uint8
	Signal   uint8
	Start    int64  // milliseconds since 1970
	Duration uint64 // nanoseconds
}

// OutputV1 names what was uploaded for one declared output. There are no names here: an output of more than one object
// is a tree.
type OutputV1 struct {
	Output uint16 // index in the spec
	Tree   bool
	Ref    protocol.RefV1
}

// NewCompletion returns the wire form.
func NewCompletion(m *forge.Completion) *CompletionV1 {
	w := &CompletionV1{
		Context: protocol.NewContext(m.Context), Message: m.Message.ULID, Result: newResult(m.Result),
		CancelSeen: m.CancelSeen, Capture: newClass(m.Capture), Log: protocol.NewLogSeal(m.Log), Hash: m.Hash,
	}
	for _, o := range m.Outputs {
		w.Outputs = append(w.Outputs, OutputV1{Output: o.Output, Tree: o.Tree, Ref: protocol.NewRef(o.Ref)})
	}
	return w
}

func newResult(r forge.Result) ResultV1 {
	w := ResultV1{
		Class: newClass(r.Class), ExitCode: r.ExitCode, Signal: r.Signal, Limit: r.Limit, Peak: r.Peak,
		Duration: protocol.Nanos(r.Duration),
	}
	for _, s := range r.Steps {
		w.Steps = append(w.Steps, StepResultV1{
			Index: s.Index, Class: newClass(s.Class), ExitCode: s.ExitCode, Signal: s.Signal,
			Start: int64(s.Start), Duration: protocol.Nanos(s.Duration),
		})
	}
	return w
}

// Tag implements protocol.Message.
func (*CompletionV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeCompletion, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *CompletionV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message. It checks the hash: a completion that was changed on its way is refused here.
func (w *CompletionV1) Validate() error {
	_, err := w.Domain()
	return err
}

// Domain implements protocol.Domain.
func (w *CompletionV1) Domain() (forge.Message, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	m := &forge.Completion{
		Context: w.Context.Domain(), Message: forge.MakeID[forge.MessageID](w.Message), Result: w.Result.domain(),
		CancelSeen: w.CancelSeen, Capture: w.Capture.domain(), Log: w.Log.Domain(), Hash: w.Hash,
	}
	for _, o := range w.Outputs {
		m.Outputs = append(m.Outputs, forge.OutputRef{Output: o.Output, Tree: o.Tree, Ref: o.Ref.Domain()})
	}
	var c protocol.Check
	c.In("completion", m.Validate())
	return m, c.Err()
}

// check is about what a domain value could not hold.
func (w *CompletionV1) check() error {
	var c protocol.Check
	c.Duration("result.duration", w.Result.Duration, 0)
	for i := range w.Result.Steps {
		c.Duration("result.steps.duration", w.Result.Steps[i].Duration, 0)
		c.Wall("result.steps.start", w.Result.Steps[i].Start)
	}
	for i := range w.Outputs {
		c.Item("outputs", i, w.Outputs[i].Ref.Validate())
	}
	return c.Err()
}

func (w *ResultV1) domain() forge.Result {
	r := forge.Result{
		Class: w.Class.domain(), ExitCode: w.ExitCode, Signal: w.Signal, Limit: w.Limit, Peak: w.Peak,
		Duration: protocol.Duration(w.Duration),
	}
	for _, s := range w.Steps {
		r.Steps = append(r.Steps, forge.StepResult{
			Index: s.Index, Class: s.Class.domain(), ExitCode: s.ExitCode, Signal: s.Signal,
			Start: forge.WallTime(s.Start), Duration: protocol.Duration(s.Duration),
		})
	}
	return r
}
