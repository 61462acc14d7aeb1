package runner

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestAnAgentRegistersRunsAJobAndCompletesIt(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		w.Output.Write(forge.LogStdout, []byte("hello\n"))
		w.Output.Write(forge.LogStderr, []byte("oops\n"))
		return forge.Result{Class: forge.ExitCode, ExitCode: 3}
	}})
	a := y.start(nil)
	c := y.daemon.Synced()
	peer := y.daemon.Peer(c)
	if peer.Runner != a.Runner() || peer.StartCounter != 1 || peer.TransportSeq != 1 || peer.Version != "0.0.1" || peer.StateFolder.IsZero() || peer.Boot.IsZero() {
		t.Errorf("registered as %+v", peer)
	}
	if y.machine.Swept() != 1 {
		t.Error("the agent connects before what earlier processes left is dead")
	}
	job := y.daemon.Offer(c, spec())
	done := runnertest.Await(y.daemon, "the job is completed", of(job))
	if done.Result.Class != forge.ExitCode || done.Result.ExitCode != 3 || done.CancelSeen {
		t.Errorf("completed with %+v", done.Result)
	}
	log := y.daemon.Log(job.Attempt)
	if string(log.Output(forge.LogStdout)) != "hello\n" || string(log.Output(forge.LogStderr)) != "oops\n" {
		t.Errorf("the log is %+v", log.Frames)
	}
	if log.Next != done.Log.Last+1 || done.Log.Bytes == 0 || done.Log.Hash.IsZero() {
		t.Errorf("the seal is %+v, the daemon has up to %d", done.Log, log.Next)
	}
	var phases []forge.AttemptState
	for _, f := range y.daemon.Frames() {
		if m, ok := f.Body.(*forge.PhaseChange); ok {
			phases = append(phases, m.Phase)
		}
	}
	if fmt.Sprint(phases) != fmt.Sprint([]forge.AttemptState{forge.AttemptPreparing, forge.AttemptRunning, forge.AttemptUploading, forge.AttemptCompleting}) {
		t.Errorf("phases %v", phases)
	}
	a.untilIdle()
	a.Stop()
	a.end(core.ExitStopped)
	y.nothingLeft()
}

// TestACutLinkLosesAndRepeatsNothingOfALog: case B57.
func TestACutLinkLosesAndRepeatsNothingOfALog(t *testing.T) {
	const lines, cuts = 200_000, 10
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintln(&want, i)
	}
	goOn := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		all := want.Bytes()
		for part := range cuts + 1 {
			for p := all[part*len(all)/(cuts+1) : (part+1)*len(all)/(cuts+1)]; len(p) > 0; {
				n := min(len(p), 4096)
				w.Output.Write(forge.LogStdout, p[:n])
				p = p[n:]
			}
			if part < cuts {
				<-goOn
			}
		}
		return forge.Result{Class: forge.Succeeded}
	}})
	y.start(nil)
	c := y.daemon.Synced()
	job := y.daemon.Offer(c, spec())
	for cut := range cuts {
		y.daemon.Until("some of the log has come", func() bool { return len(y.daemon.Log(job.Attempt).Frames) > 20*(cut+1) })
		y.daemon.HoldLogAcks(cut%2 == 0) // every other cut loses acknowledgements too
		goOn <- struct{}{}
		y.daemon.Cut()
		c = y.daemon.Synced(c)
	}
	y.daemon.HoldLogAcks(false)
	runnertest.Await(y.daemon, "the job is completed", of(job))
	log := y.daemon.Log(job.Attempt)
	if got := log.Output(forge.LogStdout); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("of %d bytes %d came", want.Len(), len(got))
	}
	if log.Streams < cuts/2 { // a stream that was cut before the daemon saw it does not count
		t.Errorf("the log came over %d streams, although the link was cut %d times", log.Streams, cuts)
	}
}

// TestAnAgentThatWasKilledReportsWhatItHeldAndCleansUp: cases B22, B40; a forced end stands for the kill.
func TestAnAgentThatWasKilledReportsWhatItHeldAndCleansUp(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
		<-ctx.Done()
		return forge.Result{Class: forge.Succeeded}
	}})
	first := y.start(nil)
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	first.Force()
	first.end(core.ExitForced)
	if y.machine.Alive() != 0 {
		t.Fatal("the workload outlives its agent")
	}
	second := y.start(nil)
	got := runnertest.Await[*forge.RecoverAttempts](y.daemon, "the next process reports", nil)
	if len(got.Previous) != 1 || got.Previous[0].Context != job || !got.Previous[0].Killed || got.Session == job.Session {
		t.Errorf("reported %+v", got)
	}
	if peer := y.daemon.Peer(y.daemon.Synced()); peer.StartCounter != 2 {
		t.Errorf("the second process counts as start %d", peer.StartCounter)
	}
	for deadline := time.Now().Add(runnertest.Patience); len(y.left()) > 0 && time.Now().Before(deadline); {
		_, err := second.Status(t.Context()) // one more turn of its loop
		y.must(err)
	}
	second.Stop()
	second.end(core.ExitStopped)
	y.nothingLeft()
	if n := y.daemon.Count(func(m forge.Message) bool { _, is := m.(*forge.LeaseAccept); return is }); n != 1 {
		t.Errorf("%d acceptances: something was run again", n)
	}
}

// TestWhatAForcedEndLeavesOfALogIsSentByTheNextProcess: case B39.
func TestWhatAForcedEndLeavesOfALogIsSentByTheNextProcess(t *testing.T) {
	wrote := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(ctx context.Context, w *runnertest.Workload) forge.Result {
		<-wrote // until the daemon has heard that it runs, and is cut off
		for range 64 {
			w.Output.Write(forge.LogStdout, make([]byte, forge.MaxLogPayload))
		}
		wrote <- struct{}{}
		<-ctx.Done()
		return forge.Result{Class: forge.Succeeded}
	}})
	first := y.start(nil)
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	y.daemon.Refuse(true)
	y.daemon.Cut()
	wrote <- struct{}{}
	<-wrote
	first.Force()
	first.end(core.ExitForced)
	if got := len(y.daemon.Log(job.Attempt).Output(forge.LogStdout)); got != 0 {
		t.Fatalf("%d bytes came over a link that was cut", got)
	}
	y.daemon.Refuse(false)
	y.start(nil)
	y.daemon.Until("the rest of the log has come", func() bool {
		return len(y.daemon.Log(job.Attempt).Output(forge.LogStdout)) == 64*forge.MaxLogPayload
	})
}

// TestAStopWaitsForTheJobAndASecondOneDoesNot: case B37.
func TestAStopWaitsForTheJobAndASecondOneDoesNot(t *testing.T) {
	for _, forced := range []bool{false, true} {
		t.Run(fmt.Sprint("forced ", forced), func(t *testing.T) {
			release := make(chan struct{})
			signalled := false
			y := newYard(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
				select {
				case <-release:
				case <-ctx.Done():
					signalled = true
				}
				return forge.Result{Class: forge.Succeeded}
			}})
			a := y.start(nil)
			c := y.daemon.Synced()
			job := y.daemon.Offer(c, spec())
			runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
			a.Stop()
			other := y.daemon.Offer(c, spec())
			rejected := runnertest.Await(y.daemon, "nothing new is taken", func(m *forge.LeaseReject) bool { return m.Context == other })
			if rejected.Reason != forge.RejectDraining {
				t.Errorf("rejected for %v", rejected.Reason)
			}
			if forced {
				a.Force()
				a.end(core.ExitForced)
				return
			}
			close(release)
			done := runnertest.Await(y.daemon, "the job is completed", of(job))
			a.end(core.ExitStopped)
			if done.Result.Class != forge.Succeeded || signalled {
				t.Errorf("completed with %+v, signalled %v", done.Result, signalled)
			}
			y.nothingLeft()
		})
	}
}

func TestACancelReachesTheWorkloadAndIsSeen(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
		<-ctx.Done()
		return forge.Result{Class: forge.Signal, Signal: 15}
	}})
	a := y.start(nil)
	c := y.daemon.Synced()
	job := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	y.daemon.Say(c, &forge.Cancel{Attempt: job.Attempt, Lease: job.Lease, Reason: forge.CancelUser})
	done := runnertest.Await(y.daemon, "the job is completed", of(job))
	if !done.CancelSeen || done.Outcome() != forge.Cancelled {
		t.Errorf("completed with %+v", done)
	}
	a.untilIdle()
}

func TestSecretsAreFetchedWhenTheJobStartsAndNotKept(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		w.Output.Write(forge.LogStdout, w.Secrets[0].Value.Reveal())
		return forge.Result{Class: forge.Succeeded}
	}})
	y.daemon.Secrets = map[string]string{"deploy/key": "correct-horse-battery"}
	a := y.start(nil)
	c := y.daemon.Synced()
	s := spec()
	s.Secrets = []forge.SecretUse{{Env: "KEY", Ref: forge.SecretRef{Name: "deploy/key"}}}
	job := y.daemon.Offer(c, s)
	if done := runnertest.Await(y.daemon, "the job is completed", of(job)); done.Result.Class != forge.Succeeded {
		t.Errorf("completed with %+v", done.Result)
	}
	if out := string(y.daemon.Log(job.Attempt).Output(forge.LogStdout)); out != "***" {
		t.Errorf("the log says %q", out)
	}
	s.Secrets[0].Ref.Name = "no/such"
	other := y.daemon.Offer(c, s)
	if done := runnertest.Await(y.daemon, "the other job is completed", of(other)); done.Result.Class != forge.InputFetch {
		t.Errorf("without its secret the job completed with %+v", done.Result)
	}
	a.untilIdle()
	err := filepath.WalkDir(y.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("correct-horse")) {
			t.Errorf("%s has the value", path)
		}
		return err
	})
	y.must(err)
}

// TestAStaleLeaseEndsTheJobAndTellsNobody: cases B48, T06.
func TestAStaleLeaseEndsTheJobAndTellsNobody(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
		<-ctx.Done()
		return forge.Result{Class: forge.Succeeded}
	}})
	stale := make(chan struct{})
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		beat, is := f.Body.(*forge.Heartbeat)
		select {
		case <-stale:
		default:
			return false
		}
		if !is || len(beat.Attempts) == 0 {
			return false
		}
		ack := &forge.HeartbeatAck{Nonce: beat.Nonce}
		for _, i := range beat.Attempts {
			ack.Verdicts = append(ack.Verdicts, forge.LeaseVerdict{Lease: i.Lease, Verdict: forge.VerdictStale})
		}
		if err := c.Reply(f, ack); err != nil {
			t.Error(err)
		}
		return true
	}
	a := y.start(nil)
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	close(stale)
	a.untilIdle()
	if y.machine.Alive() != 0 {
		t.Error("the workload lives")
	}
	if n := y.daemon.Count(func(m forge.Message) bool {
		done, is := m.(*forge.Completion)
		return is && done.Context == job
	}); n != 0 {
		t.Error("a result was claimed for a stale lease")
	}
	a.Stop()
	a.end(core.ExitStopped)
	y.nothingLeft()
}

// TestARevokedOrSupersededAgentEndsForGood: cases B47, B23.
func TestARevokedOrSupersededAgentEndsForGood(t *testing.T) {
	for reason, want := range map[forge.CloseReason]core.ExitCode{
		forge.CloseRevoked: core.ExitRevoked, forge.CloseSessionSuperseded: core.ExitSuperseded,
	} {
		t.Run(reason.String(), func(t *testing.T) {
			y := newYard(t, &runnertest.Machine{})
			y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
				if _, is := f.Body.(*forge.Register); is {
					if err := c.Reply(f, &forge.RegistrationRejected{Reason: reason}); err != nil {
						t.Error(err)
					}
					return true
				}
				return false
			}
			y.start(nil).end(want)
		})
	}
}

// TestTheOwnersSocketTellsAndDrains: 07§129.
func TestTheOwnersSocketTellsAndDrains(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	a := y.start(nil)
	c := y.daemon.Synced()
	owner := newClient(t, y.state)
	status, err := owner.Status(t.Context())
	y.must(err)
	if status.Runner != a.Runner().String() || status.Connection.Endpoint != endpoint || status.Connection.Protocol == "" || status.Starts != 1 {
		t.Errorf("status %+v", status)
	}
	health, err := owner.Health(t.Context())
	if err != nil || len(health.Checks) == 0 {
		t.Errorf("health %+v, %v", health, err)
	}
	y.must(owner.Drain(t.Context()))
	job := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "nothing is taken while it drains", func(m *forge.LeaseReject) bool { return m.Context == job && m.Reason == forge.RejectDraining })
	y.must(owner.Resume(t.Context()))
	job = y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "a job is taken after that", of(job))
	if cleaned, err := owner.CleanUp(t.Context()); err != nil || cleaned.Problem != "" {
		t.Errorf("cleaned %+v, %v", cleaned, err)
	}
}

func TestOneStateFolderHasOneAgent(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	y.start(nil)
	cfg := Config{
		State: y.state, Endpoints: []string{endpoint},
		Roads:     func(trust.Roots, *trust.Source) (transport.Dialer, transport.Dialer) { return nil, nil },
		Executors: func(string) ([]executor.Executor, error) { return nil, nil },
	}
	if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "another agent process") {
		t.Errorf("a second agent: %v", err)
	}
	cfg.State = t.TempDir()
	if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "not enrolled") {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestHeartbeatsTellWhatIsFree(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	y.start(nil)
	beat := runnertest.Await[*forge.Heartbeat](y.daemon, "a heartbeat", nil)
	if beat.Resources.Total.CPU == 0 || beat.Resources.Free.Slots != 2 || beat.Resources.Validate() != nil {
		t.Errorf("the heartbeat says %+v", beat.Resources)
	}
}

// A log goes compressed where the daemon takes that, and plain from where it does not shrink; it arrives exact all the same.
func TestALogGoesInTheEncodingThatPays(t *testing.T) {
	random := rand.NewChaCha8([32]byte{3})
	var wrote bytes.Buffer
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		say := func(p []byte) {
			wrote.Write(p)
			w.Output.Write(forge.LogStdout, p)
		}
		noise := make([]byte, forge.MaxLogPayload)
		for range 20 {
			say(bytes.Repeat([]byte("a line of text\n"), 4000))
			say([]byte("\xff\x00\r"))
		}
		for range 5 {
			_, _ = random.Read(noise)
			say(noise)
			say(bytes.Repeat([]byte("and text\n"), 4000))
		}
		return forge.Result{Class: forge.Succeeded}
	}})
	y.start(nil)
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	runnertest.Await(y.daemon, "the job has ended", func(m *forge.Completion) bool { return m.Context == job })
	log := y.daemon.Log(job.Attempt)
	if !bytes.Equal(log.Output(forge.LogStdout), wrote.Bytes()) {
		t.Errorf("%d bytes arrived that are not the %d", len(log.Output(forge.LogStdout)), wrote.Len())
	}
	if want := []logv1.EncodingV1{logv1.EncodingZstd, logv1.EncodingPlain}; !slices.Equal(log.Encodings, want) {
		t.Errorf("it came as %v", log.Encodings)
	}
}
