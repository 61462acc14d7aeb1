package native_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// onTheKeeper are the attacks that depend on what pid 1 is and on how it starts steps; package attack runs all of them with
// a pid 1 of its own.
var onTheKeeper = []string{
	"sweep", "read-environment", "use-descriptors", "climb", "see-init", "read-init-memory", "read-init-environment",
	"open-init-descriptors", "take-init-descriptor", "trace-init", "read-init-directly", "become-root", "mount-memory", "nest-users",
	"add-key", "write-root",
}

// TestAttacksOnTheKeeperAreDenied runs them as steps of real attempts. Threats S11, S12.
func TestAttacksOnTheKeeperAreDenied(t *testing.T) {
	program, secret := attackProgram(t)
	for name, rootless := range map[string]bool{"mapped": false, "rootless": true} {
		t.Run(name, func(t *testing.T) {
			if !rootless && os.Geteuid() != 0 {
				t.Skip("ids are mapped by root")
			}
			e := openExecutor(t, native.Config{ReadOnly: []string{filepath.Dir(program)}, Rootless: rootless})
			for _, name := range onTheKeeper {
				t.Run(name, func(t *testing.T) {
					host, err := attack.OwnNamespaces()
					if err != nil {
						t.Fatal(err)
					}
					target := attack.Target{Attack: name, Secret: secret, Outside: "/etc/shadow", Host: host}
					printed := attackStep(t, e, append([]string{program}, target.Args()...))
					v, err := attack.ParseVerdict(printed)
					if err != nil {
						t.Fatal(err)
					}
					if v.Worked {
						t.Errorf("the attack %v", v)
					}
				})
			}
		})
	}
}

// attackProgram is a copy of this program in a folder that sandboxes may show, and a secret that this process has in its
// environment, as an agent might.
func attackProgram(t *testing.T) (program string, secret [2]string) {
	t.Helper()
	place := "/srv"
	if _, err := os.Stat(place); err != nil {
		place = ""
	}
	dir, err := os.MkdirTemp(place, "forgeyard-attack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	program = filepath.Join(dir, "attack")
	out, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret = [2]string{rand.Text(), rand.Text()}
	t.Setenv("FORGEYARD_DECOY_TOKEN", secret[0]+secret[1])
	return program, secret
}

// printer keeps what a step prints.
type printer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printer) Write(_ forge.LogStream, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
}

func (p *printer) Event(forge.StepEvent) {}

// attackStep runs a program as the only step of an attempt, and returns what it printed.
func attackStep(t *testing.T, e executor.Executor, argv []string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := forge.DefaultJobSpec()
	spec.Job, spec.Network = "attack", forge.NetworkNone
	spec.Steps = []forge.Step{{Argv: argv, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	out := &printer{}
	w, err := e.Prepare(t.Context(), executor.Order{
		Context: forge.AttemptContext{
			Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
			Spec: forge.SpecID([]byte("attack")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
		},
		Spec: spec, Folder: folder, Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(10 * time.Minute), Output: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	<-w.Done()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return out.text.String()
}
