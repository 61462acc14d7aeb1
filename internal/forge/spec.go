package forge

import "time"

// Bounds of a specification. The whole of it has at most MaxSpecBytes when it is encoded.
const (
	MaxSpecBytes      = 1 << 20
	MaxSteps          = 256
	MaxEnv            = 256 // variables of a job, and of each step
	MaxEnvValue       = 32 << 10
	MaxArgs           = 1024
	MaxArg            = 32 << 10
	MaxScript         = 256 << 10
	MaxAxes           = 16
	MaxProcesses      = 1 << 20
	MaxExitCodes      = 64
	MaxToolchainNeeds = 64
	MaxLogLimit       = 16 * GiB
	MinLogLimit       = 64 * KiB
	maxEnvName        = 256
)

// ProjectName names a project. Contents, caches and secrets of one are invisible to another.
type ProjectName string

// DefaultProject is used where none is named.
const DefaultProject ProjectName = "default"

// JobKey names a job within its pipeline.
type JobKey string

// JobSpec is what a job is to do: everything that decides what runs, and nothing about which run, attempt or runner it is
// (D04). It is immutable: its identity is the digest of its encoded bytes (package jobspec), and all attempts of a job
// share it. A job learns the ids of its run at run time, from its environment.
type JobSpec struct {
	Project      ProjectName
	Job          JobKey
	Leg          Leg
	Steps        []Step // at least one
	Env          []EnvVar
	Secrets      []SecretUse
	Inputs       []Input
	Outputs      []Output
	Caches       []Cache
	Resources    Resources // asked for, and the limit as well
	Processes    uint32    // most processes and threads at a time
	Network      Network
	Sandbox      SandboxNeed
	Constraints  Constraints
	Timeouts     Timeouts
	Connectivity ConnectivityPolicy
	LogLimit     Bytes
	Retry        RetryPolicy
}

// Leg is the part of a matrix that this job is: one value an axis, in the order in which the pipeline lists the axes.
// It is empty for a job without a matrix.
type Leg []AxisValue

// AxisValue is the value of one axis.
type AxisValue struct{ Axis, Value string }

// String writes axis=value, with commas between.
func (l Leg) String() string {
	text := ""
	for i, v := range l {
		if i > 0 {
			text += ", "
		}
		text += v.Axis + "=" + v.Value
	}
	return text
}

// EnvVar is one variable of the environment. The name has no FORGEYARD_ in front: those come from the agent.
type EnvVar struct{ Name, Value string }

// Step is one program of a job: either the arguments of a program, or a script with the shell that is given it.
type Step struct {
	ID           string        // by which outputs of the step are found; may be empty
	Name         string        // for people; may be empty
	Argv         []string      // or
	Script       string        // handed to
	Shell        []string      // as one more argument
	Dir          string        // below WorkRoot, usually SourceDir
	Env          []EnvVar      // besides the job's, and stronger
	Timeout      time.Duration // zero: only the job's
	When         When
	AllowFailure AllowFailure
}

// When says after what a step runs, or an output is kept. The planner folds every condition to one of these, so an agent
// evaluates no expressions (D05).
type When uint8

// The conditions.
const (
	WhenSuccess When = 1 // nothing has failed so far
	WhenFailure When = 2 // something has
	WhenAlways  When = 3 // also after a cancel
	WhenNever   When = 4 // a condition that was false already when the job was planned
)

// AllowFailure says which failures of a step do not fail its job.
type AllowFailure struct {
	Any       bool
	ExitCodes []uint8 // or these, ascending, none of them 0
}

// Network says what network a job sees.
type Network uint8

// The networks.
const (
	NetworkNone Network = 1 // loopback only
	NetworkHost Network = 2 // that of the machine, where local policy agrees
)

// SandboxNeed is how a job must be confined. A runner that cannot give all of it does not take the job.
type SandboxNeed struct {
	Kind   SandboxKind
	Levels []string // walls that it insists on, by name
	Image  string   // with SandboxOCI: a reference that ends in @sha256: and 64 hexadecimal digits
}

// Constraints are what the runner must be.
type Constraints struct {
	OS, Arch   string // empty: any
	Labels     []string
	Pool       string
	Trust      TrustClass // of the run, see TrustClass.Runs
	Devices    []DeviceCount
	Toolchains []ToolchainNeed
}

// ToolchainNeed asks for a toolchain.
type ToolchainNeed struct {
	ID      string
	Version string // empty: any
}

var (
	whenNames    = []string{"", "success", "failure", "always", "never"}
	networkNames = []string{"", "none", "host"}
)

func (w When) String() string    { return name(whenNames, uint8(w)) }
func (n Network) String() string { return name(networkNames, uint8(n)) }

// ParseWhen reads what String writes.
func ParseWhen(s string) (When, error) { return word[When]("condition", whenNames, s) }

// ParseNetwork reads what String writes.
func ParseNetwork(s string) (Network, error) { return word[Network]("network", networkNames, s) }

// Valid reports whether w is one of the conditions.
func (w When) Valid() bool { return w >= WhenSuccess && w <= WhenNever }

// Valid reports whether n is one of the networks.
func (n Network) Valid() bool { return n == NetworkNone || n == NetworkHost }

// Allows reports whether a step that ended with class c and exit code does not fail its job.
func (a AllowFailure) Allows(c Class, exit uint8) bool {
	if c.Fault() != FaultUser {
		return false
	}
	if a.Any {
		return true
	}
	for _, code := range a.ExitCodes {
		if c == ExitCode && code == exit {
			return true
		}
	}
	return false
}

// DefaultJobSpec is a specification to start from: everything that has a default has it, and what the author must say is
// empty. Reading the author's words over it keeps "not said" apart from a zero that was said, which Validate refuses.
func DefaultJobSpec() JobSpec {
	return JobSpec{
		Project:      DefaultProject,
		Resources:    Resources{CPU: 1000, Memory: 2 * GiB, Disk: 10 * GiB, Slots: 1},
		Processes:    4096,
		Network:      NetworkNone,
		Sandbox:      SandboxNeed{Kind: SandboxNative},
		Constraints:  Constraints{Pool: DefaultPool, Trust: TrustUntrusted},
		Timeouts:     Timeouts{Prepare: 10 * time.Minute, Run: time.Hour, Upload: 10 * time.Minute, Grace: 10 * time.Second},
		Connectivity: DefaultLeasePolicy().Connectivity(),
		LogLimit:     64 * MiB,
		Retry:        RetryPolicy{Infra: 2},
	}
}
