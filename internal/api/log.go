package api

import "unicode/utf8"

// Names of the events of GET attempts/{id}/log. The id of each is the sequence number of its frame, so that a stream that
// broke goes on behind the last one that arrived.
const (
	EventOutput       = "output"        // Data: LogOutput, of the workload or of the agent
	EventStepStarted  = "step_started"  // LogStep
	EventStepFinished = "step_finished" // LogStep
	EventAnnotation   = "annotation"    // LogNote
	EventNotice       = "notice"        // LogNote
	EventGap          = "gap"           // LogGap: output is missing here
	EventLag          = "lag"           // LogLag: more was written than was read so far; nothing is missing for that
	EventEnd          = "end"           // LogEnd: nothing follows in this stream
	EventChange       = "change"        // RunEvent, of GET runs/{id}/events
)

// LogOutput is a piece of output exactly as it was written: its end need not be that of a line, nor of a character.
type LogOutput struct {
	Seq    uint64 `json:"seq"`
	Stream string `json:"stream"` // stdout, stderr, agent
	At     *Time  `json:"at,omitempty"`
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"` // in base64, instead of Text, where it is not UTF-8
}

// OutputOf returns a piece of output as JSON can hold it.
func OutputOf(seq uint64, stream string, at *Time, data []byte) LogOutput {
	out := LogOutput{Seq: seq, Stream: stream, At: at}
	if utf8.Valid(data) {
		out.Text = string(data)
	} else {
		out.Bytes = data
	}
	return out
}

// Data is the piece, byte for byte.
func (o LogOutput) Data() []byte {
	if len(o.Bytes) > 0 {
		return o.Bytes
	}
	return []byte(o.Text)
}

// LogStep says that a step begins or how it ended.
type LogStep struct {
	Seq    uint64      `json:"seq"`
	Step   uint16      `json:"step"`
	Name   string      `json:"name,omitempty"`
	At     *Time       `json:"at,omitempty"`
	Result *StepResult `json:"result,omitempty"`
}

// LogNote is a remark of the agent, or a place in the source that the output pointed at.
type LogNote struct {
	Seq    uint64 `json:"seq"`
	Level  string `json:"level"` // notice, warning, error
	Text   string `json:"text"`
	Step   uint16 `json:"step,omitempty"`
	File   string `json:"file,omitempty"`
	Line   uint32 `json:"line,omitempty"`
	Column uint32 `json:"column,omitempty"`
	At     *Time  `json:"at,omitempty"`
}

// LogGap stands for output that is missing.
type LogGap struct {
	Seq   uint64 `json:"seq,omitempty"`
	Bytes uint64 `json:"bytes,omitempty"` // where it is known
	Why   string `json:"why"`
}

// LogLag says how much more of a log is stored than was sent to a reader that follows it: once that is more than a MiB, and
// from time to time while it stays so. With zeros it has caught up, all but.
type LogLag struct {
	Seq    uint64 `json:"seq"` // the frame that was sent last
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"` // about
}

// LogQuery says what is looked for in a log.
type LogQuery struct {
	Text       string // 1 to 256 bytes without a line end
	IgnoreCase bool
	From       uint64 // the first frame; 0 and 1 are the beginning
	After      string // LogMatches.Next of the search before, instead of From
	Limit      int    // of matches; 0 is DefaultPage, MaxPage the most
}

// LogMatch is a line in which a text was found: once for each line, of long lines once for each 64 KiB. Its text is at most
// a KiB of the line around the match.
type LogMatch struct {
	LogOutput
	Offset int `json:"offset"` // of the match, in the bytes of its frame
	Start  int `json:"start"`  // of the match, in the bytes of the text
	End    int `json:"end"`
}

// LogMatches is what one search has found. It looks at a bounded part of the log.
type LogMatches struct {
	Items    []LogMatch `json:"items"`
	Next     string     `json:"next"`     // what the next search goes on with, also when the log has grown
	More     bool       `json:"more"`     // something is stored that was not looked at
	Searched uint64     `json:"searched"` // bytes
}

// LogEnd is the last event of every stream. Where the log was followed, the attempt has ended; else it may go on.
// Complete says that the log is all that the runner wrote.
type LogEnd struct {
	Attempt  Attempt `json:"attempt"`
	Complete bool    `json:"complete"`
}
