package api

// RunRequest asks for a run, by its jobs, by a pipeline, or as a retry of another: POST runs. With the same Idempotency-Key, the same request gives
// the same run.
type RunRequest struct {
	Project  string           `json:"project,omitempty"` // "default" where none is named
	Name     string           `json:"name,omitempty"`    // a title for people, one line of at most 256 bytes
	Jobs     []JobRequest     `json:"jobs,omitempty"`
	Pipeline *PipelineRequest `json:"pipeline,omitempty"`
	Retry    *RetryRequest    `json:"retry,omitempty"` // with nothing else beside it
}

// PipelineRequest is a pipeline file with what it runs on. Its trees were uploaded before.
type PipelineRequest struct {
	File   string   `json:"file"`           // its path in the source, for people
	Text   string   `json:"text"`           // all of it
	Jobs   []string `json:"jobs,omitempty"` // keys of those that are wanted, with whatever they need; absent: all
	Source *Tree    `json:"source,omitempty"`
	// SourceWithGit is the source with a clean repository of the commit in .git, for the jobs that want it.
	SourceWithGit *Tree    `json:"source_with_git,omitempty"`
	Git           GitFacts `json:"git"`
	Sandbox       string   `json:"sandbox,omitempty"` // what confines the jobs: native (default) or process
}

// GitFacts are what expressions of a pipeline know as git.*.
type GitFacts struct {
	Event  string `json:"event,omitempty"` // manual where nothing is said
	SHA    string `json:"sha,omitempty"`
	Ref    string `json:"ref,omitempty"` // refs/heads/main
	Branch string `json:"branch,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Dirty  bool   `json:"dirty,omitempty"`
}

// JobRequest is one job of it.
type JobRequest struct {
	Key   string      `json:"key"`
	Leg   []AxisValue `json:"leg,omitempty"`
	Needs []Need      `json:"needs,omitempty"`
	Spec  JobSpec     `json:"spec"`
}

// AxisValue is the value of one axis of a matrix.
type AxisValue struct {
	Axis  string `json:"axis"`
	Value string `json:"value"`
}

// Need names a job that must end well first. An optional one may also have been skipped.
type Need struct {
	Job      string `json:"job"`
	Optional bool   `json:"optional,omitempty"`
}

// Run is one execution: POST runs, GET runs, GET runs/{id}, POST runs/{id}:cancel.
type Run struct {
	ID        string         `json:"id"`
	Project   string         `json:"project"`
	Name      string         `json:"name,omitempty"`
	State     string         `json:"state"` // Planned, Running, Succeeded, Failed, Cancelled, Error
	Ended     bool           `json:"ended"`
	Trust     string         `json:"trust"`               // untrusted, trusted, protected: by the token that it was submitted with
	By        string         `json:"by,omitempty"`        // who submitted it: admin, socket, token:NAME
	ExitCode  *int           `json:"exit_code,omitempty"` // once it has ended: of a command that follows it
	Reason    string         `json:"reason,omitempty"`    // why it ended so
	CreatedAt *Time          `json:"created_at,omitempty"`
	EndedAt   *Time          `json:"ended_at,omitempty"`
	RetryOf   string         `json:"retry_of,omitempty"` // the run of which it tries jobs again
	Counts    map[string]int `json:"counts,omitempty"`   // jobs by state
	Jobs      []Job          `json:"jobs,omitempty"`     // of one run; not in lists
	Taken     []Job          `json:"taken,omitempty"`    // jobs of earlier runs whose results count in this one; likewise
}

// Job is one node of a run: GET jobs/{id}.
type Job struct {
	ID              string      `json:"id"`
	Run             string      `json:"run"`
	Project         string      `json:"project,omitempty"`
	Key             string      `json:"key"`
	Title           string      `json:"title,omitempty"` // for people
	Leg             []AxisValue `json:"leg,omitempty"`
	Needs           []Need      `json:"needs,omitempty"`
	Group           string      `json:"group,omitempty"` // of which one job runs at a time
	State           string      `json:"state"`           // Waiting, Ready, Offered, Active, Succeeded, Failed, Cancelled, Skipped
	Ended           bool        `json:"ended"`
	CancelRequested bool        `json:"cancel_requested,omitempty"`
	Allowed         bool        `json:"allowed,omitempty"` // it has failed, and that counts as a success
	Reason          string      `json:"reason"`            // one sentence on why it is in this state; GET jobs/{id}/explain says all
	Class           string      `json:"class,omitempty"`
	Fault           string      `json:"fault,omitempty"` // user, infrastructure, cancelled
	Spec            string      `json:"spec,omitempty"`
	Attempts        uint32      `json:"attempts"`
	Retries         *Retries    `json:"retries,omitempty"`
	CurrentAttempt  string      `json:"current_attempt,omitempty"` // the newest
	CreatedAt       *Time       `json:"created_at,omitempty"`
	EndedAt         *Time       `json:"ended_at,omitempty"`
	AllAttempts     []Attempt   `json:"all_attempts,omitempty"` // of one job, oldest first; not in runs
	Definition      *JobSpec    `json:"definition,omitempty"`   // likewise
}

// Retries says how many attempts were paid by whom.
type Retries struct {
	Free           uint32 `json:"free"` // ended before anything could have run
	Infrastructure uint32 `json:"infrastructure"`
	User           uint32 `json:"user"`
}

// Attempt is one try at a job: GET attempts/{id}.
type Attempt struct {
	ID         string       `json:"id"`
	Job        string       `json:"job"`
	Run        string       `json:"run,omitempty"`
	Number     uint32       `json:"number"` // from 1 within the job
	State      string       `json:"state"`
	Ended      bool         `json:"ended"`
	Runner     string       `json:"runner,omitempty"`
	RunnerName string       `json:"runner_name,omitempty"`
	Sandbox    string       `json:"sandbox,omitempty"` // what confines it; process: nothing does
	Class      string       `json:"class,omitempty"`
	Fault      string       `json:"fault,omitempty"`
	ExitCode   *int         `json:"exit_code,omitempty"` // of the program that decided, with class ExitCode
	Signal     *int         `json:"signal,omitempty"`    // that ended it, with class Signal
	Limit      *Measure     `json:"limit,omitempty"`     // that was passed
	Peak       *Measure     `json:"peak,omitempty"`      // measured against it
	Reason     string       `json:"reason,omitempty"`    // one sentence
	Steps      []StepResult `json:"steps,omitempty"`
	Duration   *Duration    `json:"duration,omitempty"` // of the workload
	Lease      *Lease       `json:"lease,omitempty"`
	Log        *Log         `json:"log,omitempty"`
	OfferedAt  *Time        `json:"offered_at,omitempty"`
	AcceptedAt *Time        `json:"accepted_at,omitempty"`
	StartedAt  *Time        `json:"started_at,omitempty"`
	EndedAt    *Time        `json:"ended_at,omitempty"`
}

// Measure is an amount with its unit: bytes, processes or milliseconds.
type Measure struct {
	Value uint64 `json:"value"`
	Unit  string `json:"unit"`
	Text  string `json:"text"` // for people
}

// StepResult is how one step ended.
type StepResult struct {
	Index     uint16    `json:"index"`
	Name      string    `json:"name,omitempty"`
	Class     string    `json:"class"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    *int      `json:"signal,omitempty"`
	StartedAt *Time     `json:"started_at,omitempty"`
	Duration  *Duration `json:"duration,omitempty"`
}

// Lease is the grant of an attempt to a runner. ExpiresAt is for people: nothing is decided by it.
type Lease struct {
	ID          string   `json:"id"`
	State       string   `json:"state"`
	Session     string   `json:"session,omitempty"`
	Renewals    uint64   `json:"renewals"`
	HardTTL     Duration `json:"hard_ttl"`
	MaxLifetime Duration `json:"max_lifetime"`
	ExpiresAt   *Time    `json:"expires_at,omitempty"`
}

// Log says how far an attempt's log is stored.
type Log struct {
	Next   uint64 `json:"next"` // the first frame that is not stored
	Bytes  uint64 `json:"bytes"`
	Sealed bool   `json:"sealed"`
	Closed bool   `json:"closed,omitempty"` // ended without its runner's seal: the end may be missing
}

// RunEvent is one change of state: GET runs/{id}/events, an event stream. The stream ends with an event named "end",
// whose data is the Run.
type RunEvent struct {
	Kind string `json:"kind"` // run, job, attempt
	ID   string `json:"id"`
	Job  string `json:"job,omitempty"` // key of the job
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Why  string `json:"why,omitempty"`
	At   *Time  `json:"at,omitempty"`
}

// Explanation says why a job is where it is: GET jobs/{id}/explain.
type Explanation struct {
	Job     string         `json:"job"`
	State   string         `json:"state"`
	Summary string         `json:"summary"`           // one sentence
	Details []string       `json:"details,omitempty"` // more of them
	Waiting []string       `json:"waiting_for,omitempty"`
	Ahead   int            `json:"ahead,omitempty"` // older jobs that wait as well
	Held    string         `json:"held_runner,omitempty"`
	Groups  []MissGroup    `json:"groups,omitempty"`  // runners counted by what decided, the nearest first
	Runners []PassedRunner `json:"runners,omitempty"` // every runner, the nearest miss first
}

// MissGroup counts runners that were passed over for the same thing.
type MissGroup struct {
	Miss    Miss `json:"miss"` // of the nearest of them
	Runners int  `json:"runners"`
}

// PassedRunner is a runner that did not get the job.
type PassedRunner struct {
	Runner string `json:"runner"`
	Name   string `json:"name"`
	Misses []Miss `json:"misses,omitempty"`
}

// Miss is one thing that keeps a runner from taking a job.
type Miss struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"` // for people
	Passes bool   `json:"passes"`
}
