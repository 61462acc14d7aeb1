package jobspec

// SpecV1 is the frozen form of a job specification on the wire and in stores. Its limits are those of package forge.
//
// Sizes are in bytes, processors in thousandths of a core, durations in milliseconds. Enumerations are single bytes with
// the numbers of package forge, all below 128, where such a byte is also the Postcard form of a C-like enum.
type SpecV1 struct {
	Version      uint8      // always 1, and so the first byte of every specification
	Project      string     `postcard:"max=128"`
	Job          string     `postcard:"max=64"`
	Leg          []AxisV1   `postcard:"max=16"`
	Steps        []StepV1   `postcard:"max=256"`
	Env          []VarV1    `postcard:"max=256"`
	Secrets      []SecretV1 `postcard:"max=64"`
	Inputs       []InputV1  `postcard:"max=256"`
	Outputs      []OutputV1 `postcard:"max=256"`
	Caches       []CacheV1  `postcard:"max=32"`
	Resources    ResourcesV1
	Processes    uint32
	Network      uint8
	Sandbox      SandboxV1
	Constraints  ConstraintsV1
	Timeouts     TimeoutsV1
	Connectivity ConnectivityV1
	LogLimit     uint64
	Retry        RetryV1
}

// The parts of SpecV1. Each is frozen with it.
type (
	AxisV1 struct {
		Axis  string `postcard:"max=64"`
		Value string `postcard:"max=256"`
	}
	VarV1 struct {
		Name  string `postcard:"max=256"`
		Value string `postcard:"max=32768"`
	}
	StepV1 struct {
		ID           string `postcard:"max=64"`
		Name         string `postcard:"max=256"`
		Program      ProgramV1
		Dir          string  `postcard:"max=1024"`
		Env          []VarV1 `postcard:"max=256"`
		Timeout      *uint64 // None: only the job's; never Some(0)
		When         uint8
		AllowFailure AllowFailureV1
	}
	ProgramV1 struct {
		Argv   *ArgvV1   `postcard:"=1"`
		Script *ScriptV1 `postcard:"=2"`
	}
	ArgvV1 struct {
		Args []string `postcard:"max=1024,elem=32768"`
	}
	ScriptV1 struct {
		Text  string   `postcard:"max=262144"`
		Shell []string `postcard:"max=1024,elem=32768"`
	}
	AllowFailureV1 struct {
		Any       bool
		ExitCodes []uint8 `postcard:"max=64"`
	}
	SecretV1 struct {
		Target  SecretTargetV1
		Name    string `postcard:"max=128"`
		Version uint32
	}
	SecretTargetV1 struct {
		Env  *string `postcard:"=1,max=256"`
		File *string `postcard:"=2,max=64"`
	}
	InputV1 struct {
		Mount string `postcard:"max=1024"`
		Tree  TreeV1
		Mode  uint8
	}
	TreeV1 struct {
		Digest    [32]uint8
		RootBytes uint64
		Files     uint64
		Bytes     uint64
		Depth     uint16
	}
	OutputV1 struct {
		Name     string   `postcard:"max=64"`
		Base     string   `postcard:"max=1024"`
		Patterns []string `postcard:"max=64,elem=1024"`
		Required bool
		When     uint8
		MaxBytes uint64
		MaxFiles uint32
	}
	CacheV1 struct {
		Key      string   `postcard:"max=512"`
		Paths    []string `postcard:"max=32,elem=1024"`
		Fallback []string `postcard:"max=16,elem=512"`
		ReadOnly bool
	}
	ResourcesV1 struct {
		CPU    uint64
		Memory uint64
		Disk   uint64
		Slots  uint32
	}
	SandboxV1 struct {
		Kind   uint8
		Levels []string `postcard:"max=32,elem=64"`
		Image  string   `postcard:"max=1024"`
	}
	ConstraintsV1 struct {
		OS         string   `postcard:"max=64"`
		Arch       string   `postcard:"max=64"`
		Labels     []string `postcard:"max=64,elem=64"`
		Pool       string   `postcard:"max=64"`
		Trust      uint8
		Devices    []DeviceV1    `postcard:"max=64"`
		Toolchains []ToolchainV1 `postcard:"max=64"`
	}
	DeviceV1 struct {
		Kind  string `postcard:"max=64"`
		Count uint16
	}
	ToolchainV1 struct {
		ID      string `postcard:"max=64"`
		Version string `postcard:"max=64"`
	}
	TimeoutsV1 struct {
		Prepare uint64
		Run     uint64
		Upload  uint64
		Grace   uint64
	}
	ConnectivityV1 struct {
		Mode  uint8
		Extra uint64
	}
	RetryV1 struct {
		Max       uint8
		On        []uint8 `postcard:"max=4"`
		ExitCodes []uint8 `postcard:"max=64"`
		Infra     uint8
	}
)
