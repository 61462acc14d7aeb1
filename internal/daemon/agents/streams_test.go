package agents_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// running brings one attempt to where it may log.
func (w *world) running(edits ...func(*forge.JobSpec)) (*process, forge.AttemptContext) {
	w.t.Helper()
	runner := w.runner(1)
	p := w.process(runner)
	p.connect()
	w.place(w.job(edits...), runner)
	return p, p.take()
}

// Case B31, row I21: the log of another runner's attempt looks as if it were not there.
func TestALogStreamOfAnothersAttemptIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.begin()
	_, theirs := w.running()
	p, own := w.running()
	wrongLease := own
	wrongLease.Lease = theirs.Lease
	nobodys := own
	nobodys.Attempt = ident.New[forge.AttemptID]()
	for name, c := range map[string]forge.AttemptContext{"theirs": theirs, "wrong lease": wrongLease, "nobody's": nobodys} {
		if code := p.openLog(c, 1).reset(); code != protocol.ResetNotFound {
			t.Errorf("%s: reset with %v", name, code)
		}
	}
	w.audited("foreign_attempt", p.runner)
	log := p.openLog(own, 1)
	w.must(log.write("mine"))
	p.acked(own.Attempt, 2)
	if text := w.log(own.Attempt) + w.log(theirs.Attempt); text != "mine" {
		t.Errorf("%q", text)
	}
}

// Cases B48 and T06: after the log has ended the agent is told once, and stops.
func TestALogStreamOfASealedLogIsStale(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running()
	log := p.openLog(c, 1)
	w.must(log.write("all"))
	p.acked(c.Attempt, 2)
	p.finish(c, []byte("all"), 1)
	if code := p.openLog(c, 2).reset(); code != protocol.ResetStaleLease || code.Retry() != protocol.ResetNever {
		t.Errorf("a new stream is reset with %v", code)
	}
	if code := log.reset(); code != protocol.ResetStaleLease {
		t.Errorf("the old stream is reset with %v", code)
	}
}

// Row 09-A14: where frames are missing the agent is asked for them.
func TestAHoleInALogIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running()
	log := p.openLog(c, 1)
	w.must(log.write("one"))
	p.acked(c.Attempt, 2)
	if code := p.openLog(c, 5).reset(); code != protocol.ResetResumeLater {
		t.Errorf("reset with %v", code)
	}
	for {
		if m, ok := p.heard().Wire.(*logv1.LogResumeV1); ok {
			if m.From != 2 || m.Attempt != c.Attempt.ULID {
				t.Errorf("%+v", m)
			}
			break
		}
	}
	jumps := p.openLog(c, 2)
	w.must(jumps.write("two"))
	jumps.next = 9
	if code := jumps.reset(); code != protocol.ResetMalformed {
		t.Errorf("frames with a hole: reset with %v", code)
	}
	p.acked(c.Attempt, 3)
}

// deaf is a stream on which nothing comes.
type deaf struct{ transport.ReceiveStream }

func (deaf) Stop(protocol.ResetCode) {}

// A runner that sends frames of one byte takes no more memory than one that sends large ones.
func TestSmallFramesOfALogCountForWhatTheyTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frame := forge.LogFrame{Seq: 1, Stream: forge.LogStdout, Bytes: []byte("x")}
		in := &link.Inbound{Receive: deaf{}}
		if n, most := agents.Gather(t.Context(), agents.MaxLogBytes, in, frame), agents.MaxBatch/agents.FrameBytes; n == 0 || n > most {
			t.Errorf("%d frames wait within one stream, at most %d may", n, most)
		}
		if n := agents.Gather(t.Context(), 10*agents.FrameBytes, in, frame); n != 9 {
			t.Errorf("%d frames wait within a budget for 9", n)
		}
	})
}

// gate lets appends through one by one, or not.
type gate struct {
	logs.Rows
	open chan struct{} // closed: all pass
}

func (g *gate) Do(ctx context.Context, cmd authority.Command) (authority.Answer, error) {
	if _, ok := cmd.(*authority.AppendLog); ok {
		select {
		case <-g.open:
		case <-ctx.Done():
			return authority.Answer{}, ctx.Err()
		}
	}
	return g.Rows.Do(ctx, cmd)
}

// Cases T04 and B49, rows 09-A12 and 09-P10: logs that do not get to the disk hold up no heartbeat and no cancel. What the
// server holds of them is bounded, and they are complete after all.
func TestALogThatIsStuckHoldsNothingElseUp(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		g := &gate{open: make(chan struct{})}
		w.rows = func(rows logs.Rows) logs.Rows { g.Rows = rows; return g }
		w.begin()
		p, c := w.running()
		piece := strings.Repeat("x", forge.MaxLogPayload)
		log := p.openLog(c, 1)
		var reset *transport.ResetError
		for log.next <= 40 { // more than the server holds
			if err := log.write(piece); errors.As(err, &reset) {
				break
			} else {
				w.must(err)
			}
		}
		if reset == nil {
			reset = &transport.ResetError{Code: log.reset()}
		}
		if reset.Code != protocol.ResetResumeLater {
			t.Errorf("reset with %v", reset.Code)
		}
		for range 3 {
			p.nonce++
			p.say(&forge.Heartbeat{
				Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline,
				Attempts: []forge.HeartbeatItem{{Attempt: c.Attempt, Lease: c.Lease, Phase: forge.AttemptAccepted}},
			})
			if ack := hear[*forge.HeartbeatAck](p); ack.Verdicts[0].Verdict != forge.VerdictContinue {
				t.Fatalf("%+v", ack)
			}
		}
		_, err := w.store.Do(w.ctx, 1, &authority.CancelJob{Job: c.Job})
		w.must(err)
		hear[*forge.Cancel](p)
		close(g.open)
		log = p.openLog(c, max(p.acks[c.Attempt], 1))
		var all strings.Builder
		for log.next <= 40 {
			w.must(log.write(piece))
		}
		for range 40 {
			all.WriteString(piece)
		}
		p.acked(c.Attempt, 41)
		if w.log(c.Attempt) != all.String() {
			t.Error("the log is not what was written")
		}
	})
}

// Case B56: logs of attempts at the same time do not mix.
func TestLogsOfSeveralAttemptsDoNotMix(t *testing.T) {
	w := newWorld(t)
	w.begin()
	type one struct {
		p *process
		c forge.AttemptContext
		l *logStream
	}
	var all []one
	for range 5 {
		p, c := w.running()
		all = append(all, one{p, c, p.openLog(c, 1)})
	}
	for range 40 {
		for _, o := range all {
			w.must(o.l.write(o.c.Attempt.String() + "\n"))
		}
	}
	for _, o := range all {
		o.p.acked(o.c.Attempt, 41)
		if got, want := w.log(o.c.Attempt), strings.Repeat(o.c.Attempt.String()+"\n", 40); got != want {
			t.Errorf("%q", got)
		}
	}
}

// source has one secret.
type source struct{}

func (source) Secret(_ context.Context, _ forge.AttemptContext, ref forge.SecretRef) (forge.Secret, forge.SecretRef, time.Duration, error) {
	if ref.Name != "token" {
		return forge.Secret{}, ref, 0, agents.ErrNoSecret
	}
	return forge.NewSecret([]byte("hush")), forge.SecretRef{Name: "token", Version: 3}, time.Minute, nil
}

// ask asks for a secret, and returns the answer or the code of a reset.
func (p *process) ask(c forge.AttemptContext, name string) (*agentv1.SecretMaterialV1, protocol.ResetCode) {
	p.w.t.Helper()
	s, err := p.link.Open(p.w.ctx, protocol.StreamSecret, &agentv1.SecretHeaderV1{Attempt: c.Attempt.ULID, Lease: c.Lease.ULID})
	p.w.must(err)
	defer s.Stop(protocol.ResetCancelled)
	req := agentv1.NewSecretRequest(c, forge.SecretRef{Name: name})
	frame, err := p.link.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, req)
	p.w.must(err)
	var reset *transport.ResetError
	if _, err = s.Write(frame); errors.As(err, &reset) { // the header said enough
		return nil, reset.Code
	}
	p.w.must(err)
	p.w.must(s.Close())
	_, m, err := p.link.Frames(protocol.StreamSecret, s, s).Next()
	if errors.As(err, &reset) {
		return nil, reset.Code
	}
	p.w.must(err)
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		p.w.t.Errorf("behind the answer: %v", err)
	}
	return m.(*agentv1.SecretMaterialV1), 0
}

// Row 07-I14: a secret goes to the session that holds the lease, and to nobody else.
func TestASecretIsForTheSessionThatHoldsTheLease(t *testing.T) {
	w := newWorld(t)
	w.secrets = source{}
	w.begin()
	p, c := w.running()
	got, _ := p.ask(c, "token")
	if got == nil || got.Version != 3 {
		t.Fatalf("%+v", got)
	}
	if value, ok := got.Take(); !ok || string(value.Reveal()) != "hush" {
		t.Error("another value")
	}
	if strings.Contains(w.journal.String(), "hush") {
		t.Error("the log has the secret")
	}
	if none, code := p.ask(c, "unknown"); none == nil || none.Value != nil {
		t.Errorf("an unknown secret: %+v, %v", none, code)
	}
	log := p.openLog(c, 1)
	w.must(log.write("x"))
	p.acked(c.Attempt, 2)
	p.finish(c, []byte("x"), 1)
	if _, code := p.ask(c, "token"); code != protocol.ResetNotFound {
		t.Errorf("after the end: %v", code)
	}
	w.audited("foreign_attempt", p.runner)
}

func TestWithoutASourceThereIsNoSecret(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running()
	if none, code := p.ask(c, "token"); none == nil || none.Value != nil {
		t.Errorf("%+v, %v", none, code)
	}
}
