package forge

// MaxNotice bounds the text of a notice or an annotation in bytes.
const MaxNotice = 4 << 10

// StepEvent is something that the agent tells within the log, in a frame of the structured stream (D06). It is for
// readers; what counts of a step is its StepResult in the completion.
type StepEvent interface {
	stepEvent()
	Validate() error
}

type (
	// StepStarted says that a step begins. What follows in the log is its output.
	StepStarted struct{ Step uint16 }

	// StepFinished says how a step ended.
	StepFinished struct{ Result StepResult }

	// Annotation points at a place of the source, as a compiler's or a test's output did.
	Annotation struct {
		Level  AnnotationLevel
		Step   uint16
		File   string // as the output spelled it; empty where no file is meant
		Line   uint32 // from 1; 0 where no line is meant
		Column uint32 // likewise
		Text   string
	}

	// Gap stands for output that was dropped because the log limit or the spool's bound was reached. A log never loses
	// anything without one (reliability I09).
	Gap struct{ Bytes uint64 }

	// Notice is a remark of the agent: a hint, a warning, what it is waiting for.
	Notice struct {
		Level AnnotationLevel
		Text  string
	}
)

// AnnotationLevel says how much a reader should care.
type AnnotationLevel uint8

// The levels.
const (
	LevelNotice  AnnotationLevel = 1
	LevelWarning AnnotationLevel = 2
	LevelError   AnnotationLevel = 3
)

var levelNames = []string{"", "notice", "warning", "error"}

func (l AnnotationLevel) String() string { return name(levelNames, uint8(l)) }

// Valid reports whether l is one of the levels.
func (l AnnotationLevel) Valid() bool { return l >= LevelNotice && l <= LevelError }

func (StepStarted) stepEvent()  {}
func (StepFinished) stepEvent() {}
func (Annotation) stepEvent()   {}
func (Gap) stepEvent()          {}
func (Notice) stepEvent()       {}

// Validate checks the index.
func (e StepStarted) Validate() error {
	var c checker
	c.stepIndex(e.Step)
	return c.err()
}

// Validate checks the result.
func (e StepFinished) Validate() error {
	var c checker
	c.stepIndex(e.Result.Index)
	if err := c.err(); err != nil {
		return err
	}
	return Result{Class: e.Result.Class, Steps: []StepResult{e.Result}}.Validate()
}

// Validate checks the bounds. The text may have several lines.
func (e Annotation) Validate() error {
	var c checker
	var root *where
	c.known(root.in("level"), e.Level.Valid(), e.Level)
	c.stepIndex(e.Step)
	c.text(root.in("file"), e.File, MaxPath)
	c.notice(e.Text)
	return c.err()
}

// Validate checks that something was lost.
func (e Gap) Validate() error {
	var c checker
	var root *where
	number(&c, root.in("bytes"), e.Bytes, 1, 1<<63)
	return c.err()
}

// Validate checks the bounds. The text may have several lines.
func (e Notice) Validate() error {
	var c checker
	var root *where
	c.known(root.in("level"), e.Level.Valid(), e.Level)
	c.notice(e.Text)
	return c.err()
}

func (c *checker) stepIndex(i uint16) {
	number(c, (*where)(nil).in("step"), i, 0, MaxSteps-1)
}

func (c *checker) notice(text string) {
	at := (*where)(nil).in("text")
	if text == "" {
		c.add(at, "is missing")
	}
	c.text(at, text, MaxNotice)
}
