package forge

import (
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Bounds of what goes in and comes out of a job.
const (
	MaxSecrets     = 64
	MaxInputs      = 256
	MaxOutputs     = 256
	MaxPatterns    = 64
	MaxOutputFiles = 1_000_000
	MaxOutputBytes = TiB
	MaxCaches      = 32
	MaxCachePaths  = 32
	MaxFallbacks   = 16
	MaxCacheKey    = 512
	MaxTreeFiles   = 1 << 32
	MaxTreeBytes   = 1024 * TiB
	MaxTreeDepth   = 1024
)

// TreeRef names a tree of files in the content store, with the totals by which an agent decides whether it has room
// before it fetches anything.
type TreeRef struct {
	Root  digest.Ref
	Files uint64
	Bytes Bytes // of all files
	Depth uint16
}

// SecretUse puts a secret into the environment, or into a file that only the job can read, never both.
type SecretUse struct {
	Env  string // the variable, or
	File string // the file's name in the secrets folder
	Ref  SecretRef
}

// InputMode says what a job may do with an input.
type InputMode uint8

// The input modes. In neither does a write reach the content store.
const (
	InputReadOnly    InputMode = 1
	InputCopyOnWrite InputMode = 2 // writes land in the attempt's own layer and vanish with it
)

// Input is a tree that is mounted before the first step.
type Input struct {
	Mount string // below WorkRoot; no mount lies within another
	Tree  TreeRef
	Mode  InputMode
}

// Output declares files that are kept after the last step. Nothing that is not declared leaves a job (07§80).
type Output struct {
	Name     string
	Base     string   // folder below WorkRoot that the patterns start from
	Patterns []string // the first takes; one with a leading ! takes matches away
	Required bool     // no match is a failure
	When     When     // not WhenNever
	MaxBytes Bytes
	MaxFiles uint32
}

// CacheOutput begins the names of outputs that a plan adds to fill a cache. One that cannot be captured fails nobody: a cache is
// never worth a failure, and the job goes on as if it had none.
const CacheOutput = "forgeyard.cache."

// Dispensable reports whether the job has succeeded also without the output.
func (o *Output) Dispensable() bool { return strings.HasPrefix(o.Name, CacheOutput) }

// DefaultOutput is an output to start from: what has a default has it.
func DefaultOutput() Output {
	return Output{Base: SourceDir, When: WhenSuccess, MaxBytes: 10 * GiB, MaxFiles: 100_000}
}

// Cache is a folder that may come filled from an earlier job, and may be kept for a later one. It is never an input: a job
// must work without.
type Cache struct {
	Key      string
	Paths    []string // below WorkRoot
	Fallback []string // prefixes of other keys to start from, best first
	ReadOnly bool     // is not kept
}

var inputNames = []string{"", "ro", "cow"}

func (m InputMode) String() string { return name(inputNames, uint8(m)) }

// ParseInputMode reads what String writes.
func ParseInputMode(s string) (InputMode, error) { return word[InputMode]("input mode", inputNames, s) }

// Valid reports whether m is one of the modes.
func (m InputMode) Valid() bool { return m == InputReadOnly || m == InputCopyOnWrite }

// Validate checks that the tree is named and its totals are within bounds.
func (t TreeRef) Validate() error {
	var c checker
	c.tree(nil, t)
	return c.err()
}

func (c *checker) tree(at *where, t TreeRef) {
	if t.Root.Digest.IsZero() {
		c.add(at.in("root"), "is missing")
	}
	number(c, at.in("files"), t.Files, 0, MaxTreeFiles)
	number(c, at.in("bytes"), t.Bytes, 0, MaxTreeBytes)
	number(c, at.in("depth"), t.Depth, 0, MaxTreeDepth)
}
