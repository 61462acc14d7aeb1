package agents_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// roads runs a story over both roads.
func roads(t *testing.T, story func(t *testing.T, w *world)) {
	for _, road := range []struct {
		name string
		udp  bool
	}{{"inmem", false}, {"quic", true}} {
		t.Run(road.name, func(t *testing.T) {
			w := newWorld(t)
			w.overUDP = road.udp
			story(t, w)
		})
	}
}

// log returns what is stored of a log as text.
func (w *world) log(attempt forge.AttemptID) string {
	w.t.Helper()
	var text bytes.Buffer
	w.must(w.logs.Read(w.ctx, attempt, 0, func(f forge.LogFrame) error {
		if f.Stream != forge.LogStructured {
			text.Write(f.Bytes)
		}
		return nil
	}))
	return text.String()
}

func TestAnAttemptFromItsOfferToItsResult(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		runner, job := w.runner(1), w.job()
		p := w.process(runner)
		p.connect()
		w.control.wait(t, "the runner is in step", func() bool { return w.control.connected[runner] == p.session })
		attempt := w.place(job, runner)
		c := p.take()
		if c.Attempt != attempt || c.Job != job {
			t.Fatalf("offered was %+v", c)
		}
		p.say(&forge.PhaseChange{Context: c, Seq: 1, Phase: forge.AttemptPreparing})
		hear[*forge.PhaseAck](p)
		p.say(&forge.PhaseChange{Context: c, Seq: 2, Phase: forge.AttemptRunning})
		hear[*forge.PhaseAck](p)
		load := forge.ResourceSummary{
			Total: forge.Resources{CPU: 8000, Memory: forge.GiB, Disk: forge.GiB, Slots: 4}, Pressure: forge.PressureNormal,
		}
		p.nonce++
		p.say(&forge.Heartbeat{
			Runner: runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline, Resources: load,
			Attempts: []forge.HeartbeatItem{{Attempt: c.Attempt, Lease: c.Lease, Phase: forge.AttemptRunning}},
		})
		if ack := hear[*forge.HeartbeatAck](p); ack.Nonce != p.nonce || len(ack.Verdicts) != 1 || ack.Verdicts[0].Verdict != forge.VerdictContinue {
			t.Fatalf("%+v", ack)
		}
		w.control.wait(t, "the load is known", func() bool { return w.control.load[runner] == load })
		log := p.openLog(c, 1)
		w.must(log.write("hello\n", "world\n"))
		w.must(log.s.Close())
		p.acked(c.Attempt, 3)
		if answer := p.finish(c, []byte("hello\nworld\n"), 2); answer != forge.CompletionAccepted {
			t.Fatalf("the answer is %v", answer)
		}
		if a := w.attempt(c.Attempt); a.Authority.State != forge.AttemptSucceeded || !a.Log.Sealed {
			t.Errorf("%+v", a)
		}
		if text := w.log(c.Attempt); text != "hello\nworld\n" {
			t.Errorf("%q", text)
		}
	})
}

// Cases T53 and T56, row 09-A17: a daemon that starts again goes on with the same attempt.
func TestAnAttemptGoesOnWithTheNextDaemon(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		runner, job := w.runner(1), w.job()
		p := w.process(runner)
		p.connect()
		w.place(job, runner)
		c := p.take()
		log := p.openLog(c, 1)
		w.must(log.write("one\n"))
		p.acked(c.Attempt, 2)
		w.restart(p)
		reply := p.connect(item(c, 2))
		if len(reply.Verdicts) != 1 || reply.Verdicts[0].Verdict != forge.VerdictContinue {
			t.Fatalf("%+v", reply)
		}
		log = p.openLog(c, 1) // it has not heard what was acknowledged
		w.must(log.write("one\n", "two\n"))
		p.acked(c.Attempt, 3)
		if answer := p.finish(c, []byte("one\ntwo\n"), 2); answer != forge.CompletionAccepted {
			t.Fatalf("the answer is %v", answer)
		}
		if a := w.attempt(c.Attempt); a.Authority.Number != 1 {
			t.Errorf("it is attempt %d", a.Authority.Number)
		}
		if text := w.log(c.Attempt); text != "one\ntwo\n" {
			t.Errorf("%q", text)
		}
	})
}

// Cases T13 and B57, row I08.
func TestALogIsExactAfterTwentyDaemons(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner, job := w.runner(1), w.job()
	p := w.process(runner)
	p.connect()
	w.place(job, runner)
	c := p.take()
	var all []string
	for round := range 20 {
		log := p.openLog(c, max(p.acks[c.Attempt], 21)-20) // as if it had not heard of the latest acknowledgements
		for int(log.next) <= len(all) {
			w.must(log.write(all[log.next-1]))
		}
		for line := range 50 {
			text := fmt.Sprintf("round %d line %d\n", round, line)
			all = append(all, text)
			w.must(log.write(text))
		}
		if round%2 == 0 { // else nobody waits for what is on its way
			p.acked(c.Attempt, log.next)
		}
		w.restart(p)
		p.connect(item(c, p.acks[c.Attempt]))
	}
	log := p.openLog(c, max(p.acks[c.Attempt], 1))
	for int(log.next) <= len(all) {
		w.must(log.write(all[log.next-1]))
	}
	p.acked(c.Attempt, log.next)
	whole := strings.Join(all, "")
	if answer := p.finish(c, []byte(whole), forge.LogSeq(len(all))); answer != forge.CompletionAccepted {
		t.Fatalf("the answer is %v", answer)
	}
	if w.log(c.Attempt) != whole {
		t.Error("the log is not what was written")
	}
}
