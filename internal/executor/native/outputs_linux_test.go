package native_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// taken is a sink that keeps all that a capture reads, to be searched for what it must not have.
type taken struct {
	mu   sync.Mutex
	text strings.Builder
}

func (k *taken) Add(_ context.Context, r io.Reader) (digest.Ref, error) {
	data, err := io.ReadAll(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text.Write(data)
	return digest.RefOf(data), err
}

func (k *taken) Put(ctx context.Context, _ digest.Ref, r io.Reader) error {
	_, err := k.Add(ctx, r)
	return err
}

// secret is in a file of the host that jobs know the path of, and is not allowed to them.
const secret = "what is outside of the attempt"

// trap is something that a hostile job leaves where its output is declared to be.
type trap struct {
	name   string
	script string // in the folder source; %s is the file with the secret
	class  forge.Class
	says   string // by the refusal; where the class is Succeeded, what was taken
	// naive is how a capture that trusts names would take it, seen from the folder that the job has left; "" where a control
	// cannot be, for the trap would have the control wait or fill the disk.
	naive string
}

var traps = []trap{
	{"a link to a file outside", "mkdir dist; ln -s %s dist/out", forge.OutputRefused, "dist/out", "dist/out"},
	{"a link as the output's folder", "ln -s $(dirname %s) dist", forge.OutputRefused, "dist", "dist/file"},
	{"a link in the place of a folder, by a process that is left", `mkdir dist; echo fine >dist/file
		(trap '' TERM HUP; mv dist away; ln -s $(dirname %s) dist; while :; do sleep 1; done) >/dev/null 2>&1 &
		until [ -L dist ]; do sleep 0.01; done`, forge.OutputRefused, "dist", "dist/file"},
	{"a pipe", "mkdir dist; mkfifo dist/pipe", forge.OutputRefused, "pipe", ""},
	{"a socket", `mkdir dist; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("dist/socket")'`, forge.OutputRefused, "socket", ""},
	{"a terabyte of nothing", "mkdir dist; truncate -s 1T dist/file", forge.OutputTooLarge, "dist/file", ""},
	{"three hundred folders with long names", `mkdir dist; cd -P dist; n=$(printf '%%0255d' 0); i=0
		while [ $i -lt 300 ]; do mkdir $n; cd -P $n || exit 9; i=$((i+1)); done; echo deep >file`, forge.Succeeded, "deep", ""},
}

// Threat S18: what the agent captures after the end of a hostile job.
func TestTrapsThatAHostileJobLeavesForTheCaptureCatchNothing(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg native.Config) {
		outside := t.TempDir()
		file := filepath.Join(outside, "file")
		must(t, os.Chmod(outside, 0o755))
		must(t, os.WriteFile(file, []byte(secret), 0o644))
		e := openExecutor(t, cfg)
		for _, layered := range []bool{false, true} {
			for _, trap := range traps {
				t.Run(fmt.Sprintf("%s, layered %v", trap.name, layered), func(t *testing.T) {
					script := trap.script
					if strings.Contains(script, "%s") {
						script = fmt.Sprintf(script, file)
					} else {
						script = strings.ReplaceAll(script, "%%", "%")
					}
					j := newJob(t, script)
					if layered {
						j.withInput(forge.InputCopyOnWrite)
					}
					w := j.start(e)
					if o := j.end(w); o.Result.Class != forge.Succeeded {
						t.Fatalf("it ended with %+v\n%s", o.Result, j.sink.Text(forge.LogStderr))
					}
					if left := inside(j.unique); len(left) > 0 {
						t.Errorf("processes %v are left", left)
					}
					j.refusesOutput(w, trap)
				})
			}
		}
	})
}

// refusesOutput captures what a trap is in, and then does as a capture would that knows nothing of traps.
func (j *job) refusesOutput(w executor.Workload, trap trap) {
	j.Helper()
	root, err := w.Files()
	must(j.T, err)
	defer func() { must(j.T, root.Close()) }()
	var sink taken
	out := forge.Output{Name: "dist", Base: forge.SourceDir, Patterns: []string{"dist"}, Required: true, MaxBytes: forge.GiB, MaxFiles: 1000}
	_, err = capture.Take(j.Context(), root, out, &sink, capture.Limits{})
	var refused *capture.Error
	if trap.class == forge.Succeeded {
		if err != nil || !strings.Contains(sink.text.String(), trap.says) {
			j.Errorf("the output is not taken: %v", err)
		}
	} else if !errors.As(err, &refused) || refused.Class != trap.class || !strings.Contains(err.Error(), trap.says) {
		j.Errorf("the output is refused with %v, want %v that says %q", err, trap.class, trap.says)
	}
	if strings.Contains(sink.text.String(), secret) {
		j.Error("the capture has read what is outside")
	}
	if trap.naive == "" {
		return
	}
	if got := naive(j.T, root, trap.naive); got != secret {
		j.Errorf("whoever follows names reads %q: this is no trap", got)
	}
}

// naive reads a file as one does who follows every link.
func naive(t *testing.T, root *os.Root, name string) string {
	t.Helper()
	folder, err := root.Open(forge.SourceDir)
	must(t, err)
	defer func() { must(t, folder.Close()) }()
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	data, err := io.ReadAll(os.NewFile(uintptr(fd), name))
	must(t, err)
	return string(data)
}
