package logv1

import (
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/postcard"
)

// ErrEvent is the kind of every error of EncodeEvent and DecodeEvent.
var ErrEvent = errors.New("logv1: no step event")

// StepEventV1 is what a frame of the structured kind holds: one event, as an enum. It is no frame of its own and so has
// no tag. A reader that does not know the variant shows nothing.
type StepEventV1 struct {
	Started    *StepStartedV1  `postcard:"=1"`
	Finished   *StepFinishedV1 `postcard:"=2"`
	Annotation *AnnotationV1   `postcard:"=3"`
	Gap        *GapV1          `postcard:"=4"`
	Notice     *NoticeV1       `postcard:"=5"`
}

// StepStartedV1 says that a step begins.
type StepStartedV1 struct{ Step uint16 }

// StepFinishedV1 says how a step ended.
type StepFinishedV1 struct {
	Step     uint16
	Class    ClassV1
	ExitCode uint8
	Signal   uint8
	Start    int64  // milliseconds since 1970
	Duration uint64 // nanoseconds
}

// AnnotationV1 points at a place of the source.
type AnnotationV1 struct {
	Level  LevelV1
	Step   uint16
	File   string `postcard:"max=1024"`
	Line   uint32
	Column uint32
	Text   string `postcard:"max=4096"`
}

// GapV1 stands for output that was dropped.
type GapV1 struct{ Bytes uint64 }

// NoticeV1 is a remark of the agent.
type NoticeV1 struct {
	Level LevelV1
	Text  string `postcard:"max=4096"`
}

// ClassV1 is how a step ended. An unknown one refuses the event.
type ClassV1 uint8

// LevelV1 says how much a reader should care. An unknown one refuses the event.
type LevelV1 uint8

var classes = protocol.Enum[forge.Class]{
	1: forge.Succeeded, 2: forge.ExitCode, 3: forge.Signal, 4: forge.TimedOut, 5: forge.OutOfMemory, 6: forge.PidsExhausted,
	7: forge.DiskFull, 8: forge.OutputMissing, 9: forge.OutputTooLarge, 10: forge.OutputRefused, 11: forge.Cancelled,
	12: forge.InputFetch, 13: forge.CorruptInput, 14: forge.DiskInsufficient, 15: forge.PathIncompatible,
	16: forge.SandboxSetup, 17: forge.UploadFailed, 18: forge.Interrupted, 19: forge.Lost,
}

var levels = protocol.Enum[forge.AnnotationLevel]{1: forge.LevelNotice, 2: forge.LevelWarning, 3: forge.LevelError}

func (c ClassV1) String() string { return classes.Name(uint8(c)) }

func (l LevelV1) String() string { return levels.Name(uint8(l)) }

// EncodeEvent returns the bytes of a frame that tells an event. It refuses what DecodeEvent would.
func EncodeEvent(e forge.StepEvent) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	var w StepEventV1
	switch e := e.(type) {
	case forge.StepStarted:
		w.Started = &StepStartedV1{e.Step}
	case forge.StepFinished:
		r := e.Result
		w.Finished = &StepFinishedV1{
			r.Index, ClassV1(classes.Wire(r.Class)), r.ExitCode, r.Signal, int64(r.Start), protocol.Nanos(r.Duration),
		}
	case forge.Annotation:
		w.Annotation = &AnnotationV1{LevelV1(levels.Wire(e.Level)), e.Step, e.File, e.Line, e.Column, e.Text}
	case forge.Gap:
		w.Gap = &GapV1{e.Bytes}
	case forge.Notice:
		w.Notice = &NoticeV1{LevelV1(levels.Wire(e.Level)), e.Text}
	}
	b, err := postcard.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	return b, nil
}

// DecodeEvent reads what EncodeEvent writes, and nothing else.
func DecodeEvent(b []byte) (forge.StepEvent, error) {
	var w StepEventV1
	if err := postcard.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	e, err := w.domain()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	return e, nil
}

func (w *StepEventV1) domain() (forge.StepEvent, error) {
	switch {
	case w.Started != nil:
		return forge.StepStarted{Step: w.Started.Step}, nil
	case w.Finished != nil:
		return w.Finished.domain()
	case w.Annotation != nil:
		a := w.Annotation
		return forge.Annotation{
			Level: levels.Or(uint8(a.Level), 0), Step: a.Step, File: a.File, Line: a.Line, Column: a.Column, Text: a.Text,
		}, nil
	case w.Gap != nil:
		return forge.Gap{Bytes: w.Gap.Bytes}, nil
	default:
		return forge.Notice{Level: levels.Or(uint8(w.Notice.Level), 0), Text: w.Notice.Text}, nil
	}
}

func (w *StepFinishedV1) domain() (forge.StepEvent, error) {
	var c protocol.Check
	c.Wall("start", w.Start)
	c.Duration("duration", w.Duration, 0)
	return forge.StepFinished{Result: forge.StepResult{
		Index: w.Step, Class: classes.Or(uint8(w.Class), 0), ExitCode: w.ExitCode, Signal: w.Signal,
		Start: forge.WallTime(w.Start), Duration: protocol.Duration(w.Duration),
	}}, c.Err()
}
