package executor

import (
	"path/filepath"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// What an executor adds to an attempt's folder.
const (
	HomeDir  = "home"       // HOME
	TempDir  = "tmp"        // TMPDIR
	OwnDir   = ".forgeyard" // what follows is below it
	stepsDir = "steps"
)

// StepOutputs is where the outputs of all steps are, below the attempt's folder and with slashes.
const StepOutputs = OwnDir + "/" + stepsDir

// MaxStepOutputs bounds what one step may write as its outputs, file and folder together (D05). More ends the step with
// OutputTooLarge.
const MaxStepOutputs = 32 * forge.KiB

// Names of the variables that an executor gives to every step, besides HOME, TMPDIR and PATH.
const (
	EnvWork      = "FORGEYARD_WORK"       // the attempt's folder
	EnvOutput    = "FORGEYARD_OUTPUT"     // a file for lines name=value, another one for each step
	EnvOutputDir = "FORGEYARD_OUTPUT_DIR" // a folder for outputs with exact bytes, likewise
	EnvSecrets   = "FORGEYARD_SECRETS"    // the folder of the secrets that are files; only where there are some
)

// OutputFile is where a step of the attempt in folder writes its outputs as lines name=value.
func OutputFile(folder string, step uint16) string {
	return filepath.Join(stepDir(folder, step), "output")
}

// OutputDir is where a step of the attempt in folder writes its outputs as files.
func OutputDir(folder string, step uint16) string {
	return filepath.Join(stepDir(folder, step), "outputs")
}

func stepDir(folder string, step uint16) string {
	return filepath.Join(folder, OwnDir, stepsDir, strconv.Itoa(int(step)))
}
