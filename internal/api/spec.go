package api

import "strconv"

// JobSpec is what a job is to do, as JSON: forge.JobSpec without what the run says already (project, key, leg) and what
// only the daemon may say (trust). What is absent has the default of forge.DefaultJobSpec; a zero that is written is a
// zero, and mostly refused.
type JobSpec struct {
	Steps        []Step            `json:"steps"`
	Env          map[string]string `json:"env,omitempty"`
	Secrets      []SecretUse       `json:"secrets,omitempty"`
	Inputs       []Input           `json:"inputs,omitempty"`
	Outputs      []Output          `json:"outputs,omitempty"`
	Caches       []Cache           `json:"caches,omitempty"`
	Resources    *Resources        `json:"resources,omitempty"`
	Processes    *uint32           `json:"processes,omitempty"`
	Network      string            `json:"network,omitempty"` // none, host
	Sandbox      *Sandbox          `json:"sandbox,omitempty"`
	Constraints  *Constraints      `json:"constraints,omitempty"`
	Timeouts     *Timeouts         `json:"timeouts,omitempty"`
	Connectivity *Connectivity     `json:"connectivity,omitempty"`
	LogLimit     *Size             `json:"log_limit,omitempty"`
	Retry        *Retry            `json:"retry,omitempty"`
}

// Step is one program: argv, or a script with the shell that gets it as its last argument (DefaultShell where none is
// named). It runs in the source folder where no other is named.
type Step struct {
	ID           string            `json:"id,omitempty"`
	Name         string            `json:"name,omitempty"`
	Argv         []string          `json:"argv,omitempty"`
	Script       string            `json:"script,omitempty"`
	Shell        []string          `json:"shell,omitempty"`
	Dir          string            `json:"dir,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Timeout      *Duration         `json:"timeout,omitempty"` // absent: only the job's
	When         string            `json:"when,omitempty"`    // success (default), failure, always, never
	AllowFailure *AllowFailure     `json:"allow_failure,omitempty"`
}

// DefaultShell runs a script whose step names no shell.
var DefaultShell = []string{"sh", "-e", "-c"}

// AllowFailure says which failures of a step do not fail its job.
type AllowFailure struct {
	Any       bool       `json:"any,omitempty"`
	ExitCodes []ExitCode `json:"exit_codes,omitempty"`
}

// ExitCode is how a program ended, in a list that is written as numbers.
type ExitCode uint8

// MarshalJSON writes a number; a list of plain bytes would become one text.
func (c ExitCode) MarshalJSON() ([]byte, error) { return strconv.AppendUint(nil, uint64(c), 10), nil }

// SecretUse puts a secret into a variable or a file.
type SecretUse struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
	Ref  string `json:"ref"` // as in codecov/token or codecov/token@3
}

// Input is a tree that is mounted before the first step.
type Input struct {
	Mount string `json:"mount"`
	Tree  Tree   `json:"tree"`
	Mode  string `json:"mode"` // ro, cow
}

// Tree names a tree of files.
type Tree struct {
	Root  string `json:"root"` // b3:<hex>:<bytes>
	Files uint64 `json:"files"`
	Bytes Size   `json:"bytes"`
	Depth uint16 `json:"depth"`
}

// Output declares files that are kept.
type Output struct {
	Name     string   `json:"name"`
	Base     string   `json:"base,omitempty"` // the source folder where none is named
	Patterns []string `json:"patterns"`
	Required bool     `json:"required,omitempty"`
	When     string   `json:"when,omitempty"` // success (default), failure, always
	MaxBytes *Size    `json:"max_bytes,omitempty"`
	MaxFiles *uint32  `json:"max_files,omitempty"`
}

// Cache is a folder that may come filled from an earlier job.
type Cache struct {
	Key      string   `json:"key"`
	Paths    []string `json:"paths"`
	Fallback []string `json:"fallback,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"`
}

// Resources are asked for, and the limit as well. What is absent has its default.
type Resources struct {
	CPU    *Cores  `json:"cpu,omitempty"`
	Memory *Size   `json:"memory,omitempty"`
	Disk   *Size   `json:"disk,omitempty"`
	Slots  *uint32 `json:"slots,omitempty"`
}

// Sandbox is how a job must be confined.
type Sandbox struct {
	Kind   string   `json:"kind,omitempty"` // native, oci, process
	Levels []string `json:"levels,omitempty"`
	Image  string   `json:"image,omitempty"`
}

// Constraints are what the runner must be.
type Constraints struct {
	OS         string      `json:"os,omitempty"`
	Arch       string      `json:"arch,omitempty"`
	Labels     []string    `json:"labels,omitempty"`
	Pool       string      `json:"pool,omitempty"`
	Devices    []Device    `json:"devices,omitempty"`
	Toolchains []Toolchain `json:"toolchains,omitempty"`
}

// Device is a number of devices of a kind.
type Device struct {
	Kind  string `json:"kind"`
	Count uint16 `json:"count"`
}

// Toolchain is a compiler or tool set, of any version where none is named.
type Toolchain struct {
	ID      string `json:"id"`
	Version string `json:"version,omitempty"`
}

// Timeouts bound the phases of an attempt. What is absent has its default; none can be zero.
type Timeouts struct {
	Prepare *Duration `json:"prepare,omitempty"`
	Run     *Duration `json:"run,omitempty"`
	Upload  *Duration `json:"upload,omitempty"`
	Grace   *Duration `json:"grace,omitempty"`
}

// Connectivity says how long an attempt may go on without a daemon.
type Connectivity struct {
	Mode  string    `json:"mode,omitempty"` // continuous, grace, offline
	Extra *Duration `json:"extra,omitempty"`
}

// Retry says which failures are tried again without being asked.
type Retry struct {
	Max       *uint8     `json:"max,omitempty"`
	On        []string   `json:"on,omitempty"` // exit, signal, timeout, oom
	ExitCodes []ExitCode `json:"exit_codes,omitempty"`
	Infra     *uint8     `json:"infra,omitempty"`
}
