package keeper

import (
	"errors"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Plan is all that a machine needs to know of an attempt, except its secrets.
type Plan struct {
	Folder     string
	SecretsDir string         // empty where no secret is a file
	Weak       []forge.EnvVar // defaults that the spec may change
	Env        []forge.EnvVar // of the spec
	Agent      []forge.EnvVar // of the agent: stronger than the steps'
	Own        []forge.EnvVar // of this executor: stronger than everything
	Steps      []Step
	Run, Grace time.Duration
	Policy     forge.LeasePolicy
	Deadline   forge.Instant
}

// first is the step that an attempt begins with, if it has any to begin with.
func (p *Plan) first() (index uint16, some bool) {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.When != forge.WhenFailure })
	return uint16(max(0, i)), i >= 0
}

// Step is what a machine needs to know of a step.
type Step struct {
	Argv    []string
	Dir     string // absolute
	Env     []forge.EnvVar
	Timeout time.Duration
	When    forge.When
	Allow   forge.AllowFailure
}

// Request is what an agent tells a machine; one field is set. What is no longer possible has no effect.
type Request struct {
	Setup *Plan              `json:",omitempty"` // first, once
	Start *Start             `json:",omitempty"`
	Go    *uint16            `json:",omitempty"` // the beginning of this step is in the log
	Move  forge.Instant      `json:",omitempty"`
	Stop  forge.CancelReason `json:",omitempty"`
	Bite  Bite               `json:",omitempty"`
	Kill  bool               `json:",omitempty"`
	Full  *Overrun           `json:",omitempty"`
}

// Overrun says that an attempt has written more than it may, in bytes.
type Overrun struct{ Limit, Peak uint64 }

// Bite says how the watchdog ends an attempt.
type Bite uint8

// The bites.
const (
	BiteSoft Bite = 1
	BiteHard Bite = 2
)

// Start lets the first step go. Where its beginning is in the log already, it needs no Go.
type Start struct {
	Secrets []Secret
	Begun   *uint16 `json:",omitempty"` // the step whose beginning is
}

// Secret is a value on its way to where it is used: one of Env and File is set.
type Secret struct {
	Env, File string
	Value     []byte
}

// Report is what a machine tells its agent; one field is set.
type Report struct {
	Ready    bool              `json:",omitempty"`
	Running  bool              `json:",omitempty"` // the first step runs, or there is none to run
	Refused  *Refusal          `json:",omitempty"` // the answer to a start, instead of Running
	Starting *uint16           `json:",omitempty"` // answered by Go
	Finished *forge.StepResult `json:",omitempty"`
	Notice   string            `json:",omitempty"`
	Hint     bool              `json:",omitempty"` // the notice is no error
	Over     *executor.Outcome `json:",omitempty"` // last
}

// Refusal says why nothing starts.
type Refusal struct {
	TooLate bool
	Class   forge.Class // of a *SetupError
	Text    string
}

// Err is the error of a start that was refused.
func (r *Refusal) Err() error {
	if r.TooLate {
		return executor.ErrTooLate
	}
	return &executor.SetupError{Class: r.Class, Err: errors.New(r.Text)}
}
