package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// agentVar makes this test's executable an agent: a process with one attempt, which tests kill and stop.
const agentVar = "FORGEYARD_PROCESS_TEST_AGENT"

// task is what such an agent is to do.
type task struct {
	State, Folder, Script string
	Attempt               forge.AttemptID
	Policy                forge.LeasePolicy
	Deadline              forge.Instant
}

// printer is the Output of such an agent.
type printer struct{}

func (printer) Write(_ forge.LogStream, p []byte) { _, _ = os.Stdout.Write(p) }
func (printer) Event(forge.StepEvent)             {}

// beAgent runs a task, and prints what the steps print, and the outcome.
func beAgent(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	e, err := process.New(process.Config{State: t.State})
	if err != nil {
		return err
	}
	w, err := e.Prepare(context.Background(), t.order(printer{}))
	if err != nil {
		return err
	}
	if err := w.Start(nil); err != nil {
		return err
	}
	<-w.Done()
	return json.NewEncoder(os.Stdout).Encode(w.Outcome())
}

func (t task) order(out executor.Output) executor.Order {
	o := executor.Order{
		Context: forge.AttemptContext{Attempt: t.Attempt}, Spec: forge.DefaultJobSpec(), Folder: t.Folder,
		Policy: t.Policy, Deadline: t.Deadline, Output: out,
	}
	o.Spec.Sandbox.Kind = forge.SandboxProcess
	o.Spec.Timeouts.Grace = 100 * time.Millisecond
	o.Spec.Steps = []forge.Step{{Script: t.Script, Shell: []string{"sh", "-c"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return o
}

// newTask returns a task whose step leaves children behind in every way, prints ready, and stays.
func newTask(t *testing.T) task {
	t.Helper()
	dir := t.TempDir()
	return task{
		State: filepath.Join(dir, "state"), Folder: filepath.Join(dir, "work"), Attempt: ident.New[forge.AttemptID](),
		Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour),
		Script: `sleep 1000 & setsid sh -c 'trap "" TERM HUP INT; sleep 1000; sleep 1000' & (setsid sleep 1000 &)
			trap '' TERM; sh -c 'echo ready; sleep 1000'; echo never`,
	}
}

// marked returns the processes of a task, zombies not among them.
func (t task) marked() []int { return find(t.Attempt.String()) }

// withArgument returns the processes that have an argument, whatever their environment.
func withArgument(arg string) []int {
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if args, err := os.ReadFile(path); err == nil && slices.Contains(strings.Split(string(args), "\x00"), arg) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

// find returns the processes that were started by some executor and have text in their environment.
func find(text string) []int {
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		env, err := os.ReadFile(path)
		if err != nil || pid == os.Getpid() || !strings.Contains(string(env), "FORGEYARD_MARK=") || !strings.Contains(string(env), text) {
			continue
		}
		found = append(found, pid)
	}
	return found
}

// seesSupervisors skips a test that looks for one where nobody may: its environment tells it from others, and only root reads
// that.
func seesSupervisors(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to find a supervisor, whose environment nobody else may read")
	}
}

// supervisor returns the supervisor of a task.
func (t task) supervisor(tb testing.TB) int {
	tb.Helper()
	for _, pid := range t.marked() {
		if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(args), "supervise-one-attempt") {
			return pid
		}
	}
	tb.Fatal("no supervisor")
	return 0
}

// launch starts an agent on a task; see executortest.Agent.
func launch(tb testing.TB, t task) (*exec.Cmd, <-chan string) {
	tb.Helper()
	return executortest.Agent(tb, agentVar, t, t.marked)
}

// eventually waits for a state of the machine of which nobody tells.
func eventually(tb testing.TB, what string, met func() bool) {
	tb.Helper()
	for limit := time.Now().Add(30 * time.Second); !met(); {
		if time.Now().After(limit) {
			tb.Fatalf("it does not come to pass that %s", what)
		}
	}
}

func signalTo(tb testing.TB, pid int, s unix.Signal) {
	tb.Helper()
	if err := unix.Kill(pid, s); err != nil {
		tb.Fatal(err)
	}
}

func stateOf(tb testing.TB, t task) []string {
	tb.Helper()
	entries, err := os.ReadDir(t.State)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// I14.
func TestNothingOfAnAttemptOutlivesItsAgent(t *testing.T) {
	task := newTask(t)
	agent, _ := launch(t, task)
	eventually(t, "all of them run", func() bool { return len(task.marked()) >= 6 })
	signalTo(t, agent.Process.Pid, unix.SIGKILL)
	eventually(t, "all processes are dead", func() bool { return len(task.marked()) == 0 })

	if got := stateOf(t, task); len(got) != 2 {
		t.Errorf("state folder %q, want a mark and a record", got)
	}
	cut := filepath.Join(task.State, ident.New[forge.AttemptID]().String()+".json.new") // another agent was killed while it wrote that
	if err := os.WriteFile(cut, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newExecutor(t, task.State).KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, task); !slices.Equal(got, []string{"mark"}) {
		t.Errorf("after the clean-up the state folder has %q", got)
	}
}

// I02.
func TestAnAttemptEndsBeforeItsDeadlineWhileItsAgentIsStopped(t *testing.T) {
	task := newTask(t)
	task.Policy.KillLead, task.Policy.SoftGrace = 800*time.Millisecond, 300*time.Millisecond
	task.Deadline = clock.Boot().Add(2500 * time.Millisecond)
	agent, lines := launch(t, task)
	signalTo(t, agent.Process.Pid, unix.SIGSTOP)
	defer func() { _ = agent.Process.Signal(unix.SIGCONT) }()
	eventually(t, "all processes are dead", func() bool { return len(task.marked()) == 0 })
	if now := clock.Boot(); now > task.Deadline {
		t.Errorf("it ended %v after its deadline", now.Sub(task.Deadline))
	}
	signalTo(t, agent.Process.Pid, unix.SIGCONT)
	var o executor.Outcome
	if err := json.Unmarshal([]byte(<-lines), &o); err != nil || !o.Bitten || o.Result.Class != forge.Lost {
		t.Errorf("outcome %+v, %v", o, err)
	}
}

// local runs a task in this process.
func local(t *testing.T, task task) (executor.Workload, *executortest.Sink) {
	t.Helper()
	sink := executortest.NewSink()
	w, err := newExecutor(t, task.State).Prepare(t.Context(), task.order(sink))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	sink.Await("ready")
	return w, sink
}

// Cases B12 and B17.
func TestAKilledSupervisorEndsItsAttemptWithThatSignal(t *testing.T) {
	seesSupervisors(t)
	task := newTask(t)
	bare := fmt.Sprintf("1000.%d", os.Getpid())
	task.Script = "env -i setsid sleep " + bare + " & " + task.Script
	w, sink := local(t, task)
	signalTo(t, task.supervisor(t), unix.SIGKILL)
	<-w.Done()
	if pids := append(task.marked(), withArgument(bare)...); len(pids) > 0 {
		t.Errorf("%v live", pids)
	}
	o := w.Outcome()
	if o.Result.Class != forge.Signal || o.Result.Signal != 9 || o.Bitten || o.StopSeen != forge.CancelNone || len(o.Result.Steps) != 1 {
		t.Errorf("outcome %+v", o)
	}
	events := sink.Events()
	last, ok := events[len(events)-1].(forge.StepFinished)
	if !ok || last.Result != o.Result.Steps[0] || last.Result.Signal != 9 || len(events) != 3 {
		t.Errorf("events %+v", events)
	}
}

func TestASupervisorThatIsKilledWhileItsOutputIsHeldLeavesNothing(t *testing.T) {
	seesSupervisors(t)
	task := newTask(t)
	task.Script = "(while :; do echo x; done) & " + task.Script
	w, sink := local(t, task)
	pid := task.supervisor(t)
	sink.Hold(true)
	signalTo(t, pid, unix.SIGKILL)
	eventually(t, "all processes are dead", func() bool { return len(task.marked()) == 0 })
	select {
	case <-w.Done():
		t.Error("it is done, and its output is not handed over")
	default:
	}
	sink.Hold(false)
	<-w.Done()
}

func TestAStoppedSupervisorDoesNotHoldUpAKill(t *testing.T) {
	seesSupervisors(t)
	for name, end := range map[string]func(executor.Workload){
		"kill": executor.Workload.Kill, "bite": func(w executor.Workload) { w.Bite(false) },
	} {
		t.Run(name, func(t *testing.T) {
			task := newTask(t)
			w, _ := local(t, task)
			signalTo(t, task.supervisor(t), unix.SIGSTOP)
			end(w)
			<-w.Done()
			if pids := task.marked(); len(pids) > 0 {
				t.Errorf("%v live", pids)
			}
			want := forge.Signal
			if name == "bite" {
				want = forge.Lost
			}
			if o := w.Outcome(); o.Result.Class != want {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestWhatTheDeathOfAgentAndSupervisorLeavesIsKilledByTheNextAgent(t *testing.T) {
	seesSupervisors(t)
	task := newTask(t)
	agent, _ := launch(t, task)
	other := newTask(t)
	w, _ := local(t, other)
	signalTo(t, agent.Process.Pid, unix.SIGSTOP)
	signalTo(t, task.supervisor(t), unix.SIGKILL)
	signalTo(t, agent.Process.Pid, unix.SIGKILL)
	if len(task.marked()) == 0 {
		t.Fatal("nothing is left that could be found")
	}
	if err := newExecutor(t, task.State).KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pids := task.marked(); len(pids) > 0 {
		t.Errorf("%v live", pids)
	}
	select {
	case <-w.Done():
		t.Error("an attempt of another state folder was killed too")
	default:
	}
}

func TestAStoppedSupervisorOfADeadAgentIsKilledWithAllBelowIt(t *testing.T) {
	seesSupervisors(t)
	task := newTask(t)
	agent, _ := launch(t, task)
	signalTo(t, task.supervisor(t), unix.SIGSTOP)
	signalTo(t, agent.Process.Pid, unix.SIGKILL)
	if err := newExecutor(t, task.State).KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pids := task.marked(); len(pids) > 0 {
		t.Errorf("%v live", pids)
	}
}

func TestLeftoversAreNeverWhatStillBelongsToThisAgent(t *testing.T) {
	task := newTask(t)
	e := newExecutor(t, task.State)
	sink := executortest.NewSink()
	w, err := e.Prepare(t.Context(), task.order(sink))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	sink.Await("ready")
	before := task.marked()
	if err := e.KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for after := task.marked(); len(before) > 0; before = before[1:] {
		if !slices.Contains(after, before[0]) {
			t.Errorf("process %d was killed", before[0])
		}
	}
	if _, err := e.Prepare(t.Context(), task.order(sink)); err == nil {
		t.Error("the attempt got a second workload")
	}
}

// Case B24: what a copied folder says about processes is about those of the agent that it was copied from.
func TestTheAgentOfACopiedFolderKillsNothingOfTheOther(t *testing.T) {
	task := newTask(t)
	w, _ := local(t, task)
	before := task.marked()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(task.State)); err != nil {
		t.Fatal(err)
	}
	if err := newExecutor(t, copied).KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Done():
		t.Errorf("it ended with %+v", w.Outcome())
	default:
	}
	for _, pid := range before {
		if !slices.Contains(task.marked(), pid) {
			t.Errorf("process %d was killed", pid)
		}
	}
}

// A process id alone names nothing: the kernel uses it again.
func TestARecordOfAnIdThatIsAnothersNowKillsNothing(t *testing.T) {
	state := t.TempDir()
	e := newExecutor(t, state)
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	record := fmt.Sprintf(`{"Boot":%q,"PID":%d,"Start":1}`, strings.TrimSpace(string(boot)), bystander.Process.Pid)
	if err := os.WriteFile(filepath.Join(state, ident.New[forge.AttemptID]().String()+".json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.KillLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", bystander.Process.Pid)); err != nil || strings.Contains(string(stat), ") Z ") {
		t.Errorf("the bystander is dead: %s, %v", stat, err)
	}
}
