package forge

// MaxLogPayload bounds the bytes of one log frame.
const MaxLogPayload = 64 << 10

// LogStream says where the bytes of a log frame come from (07§72).
type LogStream uint8

// The streams.
const (
	LogStdout     LogStream = 1
	LogStderr     LogStream = 2
	LogAgent      LogStream = 3 // what the agent has to say to the reader of the log
	LogStructured LogStream = 4 // an encoded StepEvent
)

var logStreamNames = []string{"", "stdout", "stderr", "agent", "structured"}

func (s LogStream) String() string { return name(logStreamNames, uint8(s)) }

// ParseLogStream reads what String writes.
func ParseLogStream(s string) (LogStream, error) {
	return word[LogStream]("log stream", logStreamNames, s)
}

// Valid reports whether s is one of the streams.
func (s LogStream) Valid() bool { return s >= LogStdout && s <= LogStructured }

// LogFrame is one piece of an attempt's log (07§71). All streams share one sequence, so their order is kept and a log is
// resumed in one place only. Which attempt it belongs to is said by whatever carries it.
type LogFrame struct {
	Seq    LogSeq // from 1, without holes
	Stream LogStream
	Bytes  []byte // 1 to MaxLogPayload, as the workload wrote them: no line, no encoding is meant
	Time   WallTime
}

// Validate checks the bounds.
func (f LogFrame) Validate() error {
	var c checker
	var root *where
	if f.Seq == 0 {
		c.add(root.in("seq"), "is missing")
	}
	c.known(root.in("stream"), f.Stream.Valid(), f.Stream)
	if n := len(f.Bytes); n == 0 || n > MaxLogPayload {
		c.add(root.in("bytes"), "has %d bytes, not 1 to %d", n, MaxLogPayload)
	}
	return c.err()
}
