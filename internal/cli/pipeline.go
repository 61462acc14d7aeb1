package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// pipelineName is the name of a pipeline file.
const pipelineName = ".forgeyard.yml"

// stdinName as the name of a file is standard input.
const stdinName = "-"

// errNoPipeline means that there is no pipeline file.
var errNoPipeline = errors.New("no pipeline file")

// A pipelineText is a pipeline file as it was read.
type pipelineText struct {
	Name string // as people find it from the working directory
	Text []byte
}

// readPipeline reads a pipeline file: the one that is named, or else the one that belongs to the working directory. Its
// errors are usage errors; what the text says is not looked at.
func (a *app) readPipeline(name string) (*pipelineText, error) {
	if name == stdinName {
		text, err := bounded(a.env.Stdin)
		return &pipelineText{"standard input", text}, err
	}
	if name == "" {
		found, err := findPipeline()
		if err != nil {
			return nil, err
		}
		name = found
	}
	text, err := readPipelineFile(name)
	if err != nil {
		return nil, err
	}
	return &pipelineText{console.Plain(name), text}, nil
}

// findPipeline finds the file in the working directory, or in the nearest folder above it within the same repository.
// Outside of repositories nothing above is looked at: there, what lies above may be anybody's.
func findPipeline() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	top, err := git.Find(dir)
	if err != nil {
		top = dir
	}
	name, above := pipelineName, dir
	for {
		if _, err := os.Lstat(name); err == nil {
			return name, nil
		}
		up := filepath.Dir(above)
		if above == up || sameFolder(above, top) {
			break
		}
		name, above = filepath.Join("..", name), up
	}
	if other := misspelt(dir); other != "" {
		return "", console.Usage("%w: the file is called %s, and here is %s\nRename it: mv %s %s", errNoPipeline, pipelineName, other, other, pipelineName)
	}
	where := "in this folder"
	if !sameFolder(dir, top) {
		where = "in this folder or above it in the repository"
	}
	return "", console.Usage("%w: there is no %s %s\nWrite a first one with: forgeyard init", errNoPipeline, pipelineName, where)
}

// misspelt finds a file of a folder that is a pipeline file but for its name.
func misspelt(dir string) string {
	for _, name := range []string{".forgeyard.yaml", "forgeyard.yml", "forgeyard.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// readPipelineFile reads one file, within bounds.
func readPipelineFile(name string) ([]byte, error) {
	shown := console.Plain(name)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && linked(name):
		return nil, console.Usage("%s is a link to a file that is not there\nCorrect the link, or write a file in its place: rm %s, then forgeyard init", shown, shown)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, console.Usage("%w: there is no %s\nWrite a first one with: forgeyard init", errNoPipeline, shown)
	case err != nil:
		return nil, unreadable(shown, err)
	case info.IsDir():
		return nil, console.Usage("%s is a folder\nName the file in it, as in %s", shown, console.Plain(filepath.Join(name, pipelineName)))
	case !info.Mode().IsRegular():
		return nil, console.Usage("%s is no ordinary file\nTo read a pipe, name the file -", shown)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(shown, err)
	}
	text, err := bounded(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, unreadable(shown, err)
	}
	return text, nil
}

func linked(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func unreadable(shown string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return console.Usage("%s cannot be read: %v\nSee whose it is: ls -l %s", shown, cause(err), shown)
	}
	return console.Usage("%s cannot be read: %v", shown, cause(err))
}

// bounded reads no more than it takes to see that a file is too large.
func bounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, pipeline.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the pipeline: %w", err)
	}
	return text, nil
}

// cause is an error without the path, which the sentence around it names.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// parsePipeline reads the pipeline of a text. Where that is none, it shows every problem on standard error and returns a usage
// error. Advice is shown too, and keeps nothing from running.
func (a *app) parsePipeline(p *pipelineText) (*pipeline.File, error) {
	file, found := pipeline.Parse(p.Text)
	a.showProblems(a.env.Stderr, p, found)
	if file == nil {
		return nil, console.Usage("%s: %s", p.Name, problemCount(found))
	}
	return file, nil
}

// problemCount says how many problems there are, and that nothing can run before they are gone.
func problemCount(found pipeline.Problems) string {
	if n := len(found.Wrong()); n != 1 {
		return fmt.Sprintf("%d problems to correct", n)
	}
	return "one problem to correct"
}
