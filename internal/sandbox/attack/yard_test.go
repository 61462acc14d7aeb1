//go:build linux

package attack_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// Limits of sandboxes in these tests. Each bomb's own bound is well above.
const (
	limitPids   = 48
	limitMemory = 96 * forge.MiB
	limitShm    = 8 * forge.MiB
	wideMemory  = 512 * forge.MiB
)

// patience bounds one attack.
const patience = 60 * time.Second

// mode is a way to be the owner of sandboxes.
type mode struct {
	name     string
	rootless bool
}

func modes() []mode {
	list := []mode{{"rootless", true}}
	if os.Geteuid() == 0 {
		list = append(list, mode{"mapped", false})
	}
	return list
}

// yard is a launcher with which attacks are run, and what is left out of its defences.
type yard struct {
	decoys   *decoys
	launcher *sandbox.Launcher
	rootless bool
	without  []attack.Defence
}

// open starts a launcher. The sandboxes of a yard without NotShown see all decoys.
func open(t *testing.T, rootless bool, without ...attack.Defence) *yard {
	t.Helper()
	d := need(t)
	y := &yard{decoys: d, rootless: rootless, without: without}
	state := filepath.Join(d.base, "launchers", rand.Text())
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if ranges := sandbox.Ranges(2, 1); ranges > attack.Ranges {
		t.Fatalf("%d ranges of ids, and programs for %d", ranges, attack.Ranges)
	}
	l, err := sandbox.Open(t.Context(), sandbox.Config{
		State: state, View: y.view(), Pool: 1, Slots: 2, Rootless: rootless, Switches: switches(without),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal("open a launcher:", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error("close the launcher:", err)
		}
		_ = os.RemoveAll(state)
	})
	y.launcher = l
	return y
}

func (y *yard) off(d attack.Defence) bool { return slices.Contains(y.without, d) }

func (y *yard) view() sandbox.View {
	d := y.decoys
	mounts := []sandbox.Mount{{Source: d.bin, Target: attack.ProgramDir}, {Source: d.shown, Target: attack.DecoyDir}}
	if y.off(attack.NotShown) {
		mounts[1].Source = d.kernel
		mounts = append(mounts, sandbox.Mount{Source: d.host, Target: d.host})
	}
	return sandbox.View{ReadOnly: mounts}
}

// result is what came of an attack, once nothing of its sandbox should be there.
type result struct {
	output   string
	errors   string
	end      sandbox.End
	refused  error // the sandbox was not made
	leftOver []int // processes of its pid namespace that live
	open     bool  // something still holds its output
	changed  bool  // its input is not what it was
}

// run runs an attack in a sandbox of its own.
func (y *yard) run(t *testing.T, a attack.Attack) result {
	t.Helper()
	pipes := newPipes(t)
	target := y.decoys.target
	target.Attack, target.Most = a.Name, a.Most
	if a.Trees {
		target.Tree = y.decoys.tree(t)
	}
	p := plan{
		Argv: append([]string{attack.Program}, target.Args()...),
		Env:  []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/work/home", "TMPDIR=/tmp"},
		Root: a.Root && y.off(attack.NoRights), Leak: y.off(attack.ThreeDescriptors), Group: y.off(attack.AllDie),
	}
	if y.off(attack.EmptyEnvironment) {
		p.Env = append(p.Env, "FORGEYARD_DECOY_TOKEN="+y.decoys.secret)
	}
	y.accompany(t, a, &p)
	box, err := y.order(t, a, p, pipes, layers(&target)...)
	if err != nil {
		pipes.abandon()
		return result{refused: err}
	}
	namespace := pidNamespace(box.Pid())
	output := pipes.read(a, y.off(attack.BackPressure))
	if a.Judge == attack.ByLife && !p.Group || a.Judge == attack.ByOutput {
		if !output.waitStarted() {
			t.Error("the attack did not begin")
		}
		box.Kill()
	}
	select {
	case <-box.Done():
	case <-time.After(patience):
		box.Kill()
		t.Error("the sandbox did not end")
		<-box.Done()
	}
	r := result{end: box.End(), leftOver: livingIn(namespace), changed: a.Trees && treeChanged(t, target.Tree)}
	r.open = !output.ended()
	r.output, r.errors = output.texts()
	return r
}

// accompany runs the accomplice of an attack on neighbours: in a sandbox of its own, or in the same one where that defence is
// off.
func (y *yard) accompany(t *testing.T, a attack.Attack, p *plan) {
	t.Helper()
	if !slices.Contains(a.Defences, attack.OwnSandbox) {
		return
	}
	target := y.decoys.target
	target.Attack = attack.Accomplice
	with := append([]string{attack.Program}, target.Args()...)
	if y.off(attack.OwnSandbox) {
		p.With = with
		return
	}
	pipes := newPipes(t)
	neighbour := attack.Attack{Name: attack.Accomplice, Judge: attack.ByLife}
	box, err := y.order(t, neighbour, plan{Argv: with, Env: p.Env}, pipes)
	if err != nil {
		t.Fatal("make the neighbour:", err)
	}
	output := pipes.read(neighbour, false)
	if !output.waitStarted() {
		t.Error("the neighbour did not begin")
	}
	t.Cleanup(func() {
		box.Kill()
		<-box.Done()
		output.ended()
	})
}

// order makes the sandbox.
func (y *yard) order(t *testing.T, a attack.Attack, p plan, pipes *pipes, layers ...sandbox.Layer) (*sandbox.Box, error) {
	t.Helper()
	guest, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	keeper := y.keeper(t)
	defer func() { _ = keeper.Close() }()
	o := &sandbox.Order{
		Name: "attack-" + strings.ToLower(rand.Text()), Folder: y.decoys.folder(t, a.Setup), Network: forge.NetworkNone,
		Limits: sandbox.Limits{Memory: limitMemory, Pids: limitPids, Shm: limitShm},
		Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(10 * time.Minute),
		Keeper: keeper, Stdout: pipes.stdout[1], Stderr: pipes.stderr[1], Guest: guest, Layers: layers,
	}
	if a.Networked || y.off(attack.NetworkNone) {
		o.Network = forge.NetworkHost
	}
	if y.off(attack.PidsLimit) {
		o.Limits.Pids, o.Limits.Memory = 4*int(a.Most), wideMemory
	}
	if y.off(attack.MemoryLimit) {
		o.Limits.Memory = wideMemory
	}
	if y.off(attack.ShmLimit) {
		o.Limits.Shm, o.Limits.Memory = wideMemory, 2*wideMemory
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return y.launcher.Make(ctx, o)
}

// keeper is the end of a socket, or a folder of the host where a control wants one to leak.
func (y *yard) keeper(t *testing.T) *os.File {
	t.Helper()
	if y.off(attack.ThreeDescriptors) {
		f, err := os.Open(y.decoys.host)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	return os.NewFile(uintptr(fds[1]), "keeper")
}

// pidNamespace names the pid namespace of a process.
func pidNamespace(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return "" // it has ended
	}
	return name
}

// livingIn lists the processes of a pid namespace.
func livingIn(namespace string) []int {
	var list []int
	entries, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, e := range entries {
		var pid int
		if name, err := os.Readlink(e); err == nil && name == namespace {
			_, _ = fmt.Sscanf(e, "/proc/%d/", &pid)
			list = append(list, pid)
		}
	}
	return list
}

// pipes are a sandbox's output.
type pipes struct{ stdout, stderr [2]*os.File }

func newPipes(t *testing.T) *pipes {
	t.Helper()
	p := &pipes{}
	for _, pair := range []*[2]*os.File{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*pair = [2]*os.File{r, w}
	}
	return p
}

func (p *pipes) abandon() {
	for _, f := range []*os.File{p.stdout[0], p.stdout[1], p.stderr[0], p.stderr[1]} {
		_ = f.Close()
	}
}

// output is what comes out of a sandbox.
type output struct {
	pipes   *pipes
	started chan bool // takes one value: whether the word came before the end
	out     chan string
	err     chan string
	text    [2]string
}

// read takes what comes, until its end. Of a flood it takes the beginning and leaves the rest in the pipe, unless all is wanted.
func (p *pipes) read(a attack.Attack, all bool) *output {
	_ = p.stdout[1].Close()
	_ = p.stderr[1].Close()
	o := &output{pipes: p, started: make(chan bool, 1), out: make(chan string, 1), err: make(chan string, 1)}
	go func() { o.out <- o.take(p.stdout[0], a, all) }()
	go func() {
		data, _ := io.ReadAll(io.LimitReader(p.stderr[0], 1<<20))
		o.err <- string(data)
	}()
	return o
}

// take reads to the end and keeps the beginning.
func (o *output) take(r *os.File, a attack.Attack, all bool) string {
	defer func() { o.say(false) }()
	var kept []byte
	var total int64
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		kept = append(kept, buffer[:min(n, max(0, 64<<10-len(kept)))]...)
		total += int64(n)
		begun := strings.HasPrefix(string(kept), attack.Started)
		switch {
		case err != nil:
			return string(kept)
		case a.Judge == attack.ByOutput && all && total >= a.Most:
			kept = append(kept, "\nworked: all of the flood was taken\n"...)
			o.say(true)
		case a.Judge == attack.ByOutput && !all && total > 1<<20:
			o.say(true)
			return string(kept)
		case a.Judge == attack.ByLife && begun:
			o.say(true)
		}
	}
}

func (o *output) say(started bool) {
	select {
	case o.started <- started:
	default:
	}
}

func (o *output) waitStarted() bool {
	select {
	case started := <-o.started:
		return started
	case <-time.After(patience):
		return false
	}
}

// ended reports whether nobody holds the output any more, once everything of the sandbox should be gone.
func (o *output) ended() bool {
	const moment = 5 * time.Second
	deadline := time.Now().Add(moment)
	ok := true
	for i, f := range []*os.File{o.pipes.stdout[0], o.pipes.stderr[0]} {
		_ = f.SetReadDeadline(deadline)
		o.text[i] = <-[]chan string{o.out, o.err}[i]
		_, err := io.Copy(io.Discard, f)
		ok = ok && !errors.Is(err, os.ErrDeadlineExceeded)
		_ = f.Close()
	}
	return ok
}

func (o *output) texts() (out, err string) { return o.text[0], o.text[1] }

// verdict says what came of an attack.
func (r *result) verdict(a attack.Attack) (attack.Verdict, error) {
	switch {
	case r.refused != nil:
		return attack.Verdict{How: "the sandbox was not made: " + r.refused.Error()}, nil
	case r.end.SetupErr != "":
		return attack.Verdict{How: "the sandbox was not made: " + r.end.SetupErr}, nil
	}
	switch a.Judge {
	case attack.ByLife, attack.ByOutput:
		if v, err := attack.ParseVerdict(r.output); err == nil {
			return v, nil
		}
		if !strings.HasPrefix(r.output, attack.Started) {
			return attack.Verdict{}, fmt.Errorf("the attack did not begin: %q %q", r.output, r.errors)
		}
		if len(r.leftOver) > 0 || r.open {
			return attack.Verdict{Worked: true, How: fmt.Sprintf("processes live: %v, the output is held: %v", r.leftOver, r.open)}, nil
		}
		return attack.Verdict{How: "nothing of it is left"}, nil
	case attack.ByDeath:
		if v, err := attack.ParseVerdict(r.output); err == nil {
			return v, nil
		}
		if r.end.Usage.OOMKills > 0 && r.end.Exit == 128+int(syscall.SIGKILL) {
			return attack.Verdict{How: "killed for its memory"}, nil
		}
	}
	v, err := attack.ParseVerdict(r.output)
	if err != nil {
		err = fmt.Errorf("%w; it ended with %+v and said %q", err, r.end, r.errors)
	}
	return v, err
}
