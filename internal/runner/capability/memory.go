package capability

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// askAgain is for how long the answer of a tool stands whose file stays as it was. A program that passes on to another one, as
// those of rustup and pyenv do, changes its answer and not its file.
const askAgain = time.Hour

// maxMemory bounds the file that answers are kept in, in bytes.
const maxMemory = 64 << 10

// answer is what a tool has said, and the file that has said it.
type answer struct {
	Version string    `json:"version"`
	Path    string    `json:"path"` // without links
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"`
	Asked   time.Time `json:"asked"`
}

// toAsk is the answer of a tool before it has said anything, and reports whether there is such a tool.
func toAsk(name string, now time.Time) (answer, bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return answer{}, false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return answer{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return answer{}, false
	}
	return answer{Path: path, Bytes: info.Size(), Changed: info.ModTime(), Asked: now}, true
}

// stands reports whether a tool need not be asked again: its file is the same, and its answer not old. A clock that was set back
// makes every answer old.
func (a answer) stands(now answer) bool {
	age := now.Asked.Sub(a.Asked)
	return a.Path == now.Path && a.Bytes == now.Bytes && a.Changed.Equal(now.Changed) && age >= 0 && age < askAgain
}

// recall reads the answers of earlier processes, by tool. Of a file that is not there or not whole there are none.
func recall(path string) map[string]answer {
	var known map[string]answer
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if json.NewDecoder(io.LimitReader(f, maxMemory)).Decode(&known) != nil {
		return nil
	}
	return known
}

// remember keeps answers for the next process.
func remember(path string, answers map[string]answer) {
	data, err := json.Marshal(answers)
	if err == nil && len(data) <= maxMemory {
		_ = disk.WriteFile(path, data, 0o600) // without it, the next process asks again
	}
}
