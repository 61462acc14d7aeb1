package process

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// envMark is the variable by which processes of an attempt are found when nothing else leads to them.
const envMark = "FORGEYARD_MARK"

const (
	markFile  = "mark"
	markBytes = 16
)

// readMark returns the mark of a state folder, and makes it on first use. It names the folder's place too, so that the
// agent of a copied folder does not take the other's processes for its own.
func readMark(state string) (string, error) {
	path := filepath.Join(state, markFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeMark(path)
	}
	if err != nil {
		return "", err
	}
	random := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(random); err != nil || len(raw) != markBytes {
		return "", errors.New(path + ": is not a mark; end all jobs and remove the file")
	}
	place, err := placeOf(state)
	return random + "-" + place, err
}

func makeMark(path string) ([]byte, error) {
	raw := make([]byte, markBytes)
	_, _ = rand.Read(raw) // never fails
	text := []byte(hex.EncodeToString(raw))
	// On the disk before it has its name: a mark that is there but empty would keep the agent from starting after the machine
	// has lost its power.
	return text, disk.WriteFile(path, text, 0o600)
}

// markOf is the value of envMark for one attempt.
func (e *Executor) markOf(id forge.AttemptID) string { return e.mark + "." + id.String() }
