// Package doctor says what this machine can and cannot do for jobs, why, and what mends it:
// the walls around a job, the kernel's settings behind them, bounds on memory, processor and
// processes, mounts, the road to the daemon, the clock, the disk, and toolchains that a job
// would not see.
//
// It looks at the real thing where that can be done without a trace: it builds one sandbox and
// lets it go, makes and removes a control group, and mounts in the mount namespace of a child
// that ends at once. It changes no setting: whoever reads its answer does. It never mounts
// anything in its own namespaces.
//
// Each finding has a grade. Missing means that something does not work, weak that it works less
// well than it could, or that a job that insists on it is refused. Whether jobs can be confined
// at all is one answer apart from the grades.
//
// It starts no goroutine that outlives a call.
package doctor

import (
	"context"
	"time"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Grade says how well something is.
type Grade string

// The grades, as people and scripts see them.
const (
	OK      Grade = "ok"
	Weak    Grade = "weak"
	Missing Grade = "missing"
)

// Finding is the answer of one check.
type Finding struct {
	Check  string `json:"check"` // of what; the same words on every machine
	Grade  Grade  `json:"result"`
	Detail string `json:"detail,omitempty"` // what was seen or, when it is not ok, why
	Mend   string `json:"mend,omitempty"`   // a command, or what to do; empty when ok or when nothing helps
}

// Report is what the doctor found.
type Report struct {
	Confined bool      `json:"confined"` // a sandbox can be built for jobs
	Findings []Finding `json:"findings"`
}

// Find returns the finding of a check.
func (r *Report) Find(check string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.Check == check {
			return f, true
		}
	}
	return Finding{}, false
}

// Options say what to look at.
type Options struct {
	// Folder is where jobs will have their files. It need not exist yet.
	Folder string
	// Endpoints are the daemons as host:port, for the path to them. None is fine.
	Endpoints []string
	// Path, Home and Toolchains are the user's PATH, home folder, and the folders below it that
	// jobs are allowed to see. Without a Path there is no look at toolchains.
	Path, Home string
	Toolchains []string
	// Date asks the daemon for the time of day; nil when there is none to ask.
	Date func(context.Context) (time.Time, error)
	// Child are the arguments with which this program calls Child.
	Child []string
	// Build builds one sandbox, with a folder for its state, lets it go, and answers its walls.
	// Nil means the real one.
	Build func(ctx context.Context, state string) (sandbox.Report, error)
}

// within bounds one look that waits for somebody else.
const within = 15 * time.Second

func ok(check, detail string) Finding { return Finding{Check: check, Grade: OK, Detail: detail} }

func weak(check, detail, mend string) Finding {
	return Finding{Check: check, Grade: Weak, Detail: detail, Mend: mend}
}

func missing(check, detail, mend string) Finding {
	return Finding{Check: check, Grade: Missing, Detail: detail, Mend: mend}
}
