package process

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// plan is all that a machine needs to know of an attempt, except its secrets.
type plan struct {
	Folder     string
	SecretsDir string         // empty where no secret is a file
	Weak       []forge.EnvVar // defaults that the spec may change
	Env        []forge.EnvVar // of the spec
	Agent      []forge.EnvVar // of the agent: stronger than the steps'
	Own        []forge.EnvVar // of this executor: stronger than everything
	Steps      []step
	Run, Grace time.Duration
	Policy     forge.LeasePolicy
	Deadline   forge.Instant
}

// step is what a machine needs to know of a step.
type step struct {
	Argv    []string
	Dir     string // absolute
	Env     []forge.EnvVar
	Timeout time.Duration
	When    forge.When
	Allow   forge.AllowFailure
}

// request is what an agent tells a machine; one field is set. What is no longer possible has no effect.
type request struct {
	Setup *plan              `json:",omitempty"` // first, once
	Start *start             `json:",omitempty"`
	Go    *uint16            `json:",omitempty"` // the beginning of this step is in the log
	Move  forge.Instant      `json:",omitempty"`
	Stop  forge.CancelReason `json:",omitempty"`
	Bite  bite               `json:",omitempty"`
	Kill  bool               `json:",omitempty"`
}

type bite uint8

const (
	biteSoft bite = 1
	biteHard bite = 2
)

type start struct{ Secrets []secret }

type secret struct {
	Env, File string
	Value     []byte
}

// report is what a machine tells its agent; one field is set.
type report struct {
	Ready    bool              `json:",omitempty"`
	Running  bool              `json:",omitempty"` // the first step runs, or there is none to run
	Refused  *refusal          `json:",omitempty"` // the answer to a start, instead of Running
	Starting *uint16           `json:",omitempty"` // answered by Go
	Finished *forge.StepResult `json:",omitempty"`
	Notice   string            `json:",omitempty"`
	Over     *executor.Outcome `json:",omitempty"` // last
}

type refusal struct {
	TooLate bool
	Class   forge.Class // of a *SetupError
	Text    string
}
