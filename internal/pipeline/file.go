package pipeline

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of a pipeline file. Those of its jobs are package forge's.
const (
	MaxFileBytes = 1 << 20
	MaxJobs      = 256 // keys
	MaxLegs      = 256 // of one matrix
	MaxAxisItems = 256
	maxDepth     = 32      // of mappings and lists in each other
	maxNodes     = 100_000 // values read, those that aliases repeat included
)

// File is a pipeline as its author wrote it: checked, nothing filled in. It is immutable.
type File struct {
	Name        Text
	On          Triggers
	Env         []Var
	Defaults    Defaults
	Concurrency *Concurrency
	Jobs        []*Job // in the order of the file

	hashes []string // see Hashes
}

// Text is a scalar as it was written, and where.
type Text struct {
	Value string
	At    Pos
	block bool // it stands elsewhere, on several lines or with escapes: places in it cannot be counted
	quote bool // its first character stands one further right
	parts []piece
}

// Var is a named text.
type Var struct {
	Name  string
	At    Pos
	Value Text
}

// Triggers say on which events the pipeline runs by itself. They are checked and mean nothing to a run that was asked for.
type Triggers struct {
	Events    []Trigger
	Schedules []Schedule
	Manual    bool
}

// Trigger is a push, pull_request or tag, with what it is restricted to.
type Trigger struct {
	Event                 string
	Branches, Tags, Paths []Text
}

// Schedule is a time that comes again.
type Schedule struct{ Cron, Zone Text }

// Defaults hold for each job that does not say otherwise.
type Defaults struct {
	Runner  *Runner
	Shell   []string
	Timeout time.Duration
	Retry   *Retry
	Network forge.Network
	Env     []Var
}

// Concurrency keeps runs or jobs of one group from running at the same time.
type Concurrency struct {
	Group         Text
	CancelRunning bool // the newer one ends the older ones; else it waits for them
}

// Job is one job of a file, all legs of it.
type Job struct {
	Key          forge.JobKey
	At           Pos
	Name         Text
	Needs        []Need
	If           Text
	Runner       *Runner
	Network      forge.Network // zero: the default
	Source       Source
	Env          []Var
	Secrets      []Secret
	Matrix       *Matrix
	Parallel     int // zero: one
	Steps        []*Step
	Outputs      []Var
	Artifacts    []Artifact
	Caches       []Cache
	Timeout      time.Duration // zero: the default
	Retry        *Retry
	AllowFailure forge.AllowFailure
	Concurrency  *Concurrency

	condition *expression // nil: success()
	legs      []forge.Leg
	partial   bool // not everything that was written of it could be read
}

// Need names a job that has to end first.
type Need struct {
	Job      Text
	Optional bool // it may have been skipped
}

// Runner says where a job runs, and with how much.
type Runner struct {
	OS, Arch, Pool Text
	Labels         []Text
	Toolchains     []Text // id, or id@version
	CPU            forge.MilliCPU
	Memory, Disk   forge.Bytes
}

// Source says what a job starts from.
type Source struct {
	None bool
	Mode forge.InputMode
	Git  *bool // nil: where there is a repository
}

// Secret puts a secret into a variable, or into a file of the secrets folder.
type Secret struct {
	Env, File string
	Ref       Text
	At        Pos
}

// Matrix makes several legs of a job.
type Matrix struct {
	At       Pos
	Axes     []Axis
	Include  []Combination
	Exclude  []Combination
	FailFast bool // the first leg that fails ends the others
}

// Axis is one dimension of a matrix.
type Axis struct {
	Name   string
	At     Pos
	Values []Text
}

// Combination is one leg that is added, or a part of legs that are taken away.
type Combination struct {
	At     Pos
	Values []Var
}

// Step is one program of a job.
type Step struct {
	At           Pos
	ID           Text
	Name         Text
	Run          Text
	Shell        []string // nil: the default
	Dir          Text
	Env          []Var
	If           Text
	Timeout      time.Duration
	AllowFailure forge.AllowFailure

	condition *expression
}

// Artifact is what a job keeps.
type Artifact struct {
	Name     Text
	Paths    []Text
	When     forge.When
	Required bool
	MaxBytes forge.Bytes
	MaxFiles uint32
	Expire   time.Duration
}

// Cache is a folder that may come filled from an earlier job.
type Cache struct {
	At       Pos
	Key      Text
	Paths    []Text
	Fallback []Text
	ReadOnly bool
}

// Retry says which failures are tried again.
type Retry struct {
	Max uint8 // tries besides the first
	Reasons
	Infra *uint8 // likewise, where the machine was at fault; nil: the default
}

// Reasons are failures that are tried again.
type Reasons struct {
	On        []forge.RetryWord // ascending
	ExitCodes []uint8           // with RetryExit: only these; empty: all
}
