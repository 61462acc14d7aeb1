package daemon_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
)

var good = forge.Result{Class: forge.Succeeded, Duration: time.Second, Steps: []forge.StepResult{{Class: forge.Succeeded}}}

func TestARunFromItsSubmissionToItsResultOverRealConnections(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{Name: "r1"})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	run := w.submit("a", "b")

	heard := make(chan string, 1)
	c := a.take()
	go func() { // somebody follows while it runs
		body, err := w.client.RawLog(w.ctx, c.Attempt.String(), api.LogOptions{Follow: true})
		if err != nil {
			heard <- err.Error()
			return
		}
		defer func() { _ = body.Close() }()
		text, _ := io.ReadAll(body)
		heard <- string(text)
	}()
	a.print(c, "hello\n", "world\n")
	a.finish(c, "hello\nworld\n", 2, good)
	if text := <-heard; text != "hello\nworld\n" {
		t.Errorf("the follower read %q", text)
	}
	c = a.take()
	a.finish(c, "", 0, forge.Result{Class: forge.Signal, Signal: 9, Steps: []forge.StepResult{{Class: forge.Signal, Signal: 9}}})

	var end api.Run
	for e, err := range w.client.Watch(w.ctx, run.ID) {
		w.must(err)
		if e.Name == api.EventEnd {
			w.must(e.Decode(&end))
		}
	}
	if end.State != "Failed" || end.Jobs[0].State != "Succeeded" || end.Jobs[1].Class != "Signal" {
		t.Errorf("the end: %+v", end)
	}
	r, err := w.client.Runner(w.ctx, "r1")
	if err != nil || r.State != "online" || r.Certificate == nil || r.Capabilities == nil || len(r.Active) != 0 {
		t.Errorf("runner: %+v, %v", r, err)
	}
	sessions, err := w.client.Sessions(w.ctx)
	if err != nil || len(sessions.Items) != 1 || sessions.Items[0].Runner != r.ID || sessions.Items[0].Protocol != r.Protocol || r.Protocol == "" || sessions.Items[0].State != "Active" {
		t.Errorf("sessions: %+v, %v", sessions, err)
	}
	if s := sessions.Items[0]; s.RunnerName != "r1" || s.HeartbeatAt != nil {
		t.Errorf("before its first heartbeat: %+v", s)
	}
	a.nonce++
	a.say(&forge.Heartbeat{Runner: a.identity.Runner(), Session: a.session, Nonce: a.nonce, State: forge.AgentOnline})
	hear[*forge.HeartbeatAck](a)
	sessions, err = w.client.Sessions(w.ctx)
	if err != nil || sessions.Items[0].HeartbeatAt == nil || sessions.Items[0].HeartbeatAt.Before(*sessions.Items[0].SinceAt) {
		t.Errorf("after it: %+v, %v", sessions, err)
	}
	if _, err := w.client.Ready(w.ctx); err != nil {
		t.Errorf("ready: %v", err)
	}
	tokens, err := w.client.Tokens(w.ctx, api.Page{})
	if err != nil || tokens.Items[0].State != "used" || tokens.Items[0].Runner != r.ID {
		t.Errorf("tokens: %+v, %v", tokens, err)
	}
}

// Cases T53, T56: the run passes with retry 0, and no budget is touched.
func TestARunGoesOnAcrossARestartOfTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.begin()
	fingerprint := w.at.Fingerprint
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	run := w.submit("a")
	c := a.take()
	a.print(c, "before")

	ended := make(chan struct{})
	go func() { w.stop(); close(ended) }()
	if reason, warned := a.closed(); reason != forge.CloseShutdown || !warned {
		t.Errorf("closed for %v, warned: %v", reason, warned)
	}
	<-ended
	w.begin()
	if w.at.Fingerprint != fingerprint {
		t.Error("the restart made another CA")
	}
	reply := a.connect(forge.ResyncItem{
		Job: c.Job, Attempt: c.Attempt, Lease: c.Lease, Spec: c.Spec, Phase: forge.AttemptRunning, EventSeq: 1, LogNext: 2,
	})
	if len(reply.Verdicts) != 1 || reply.Verdicts[0].Verdict != forge.VerdictContinue {
		t.Fatalf("after the restart: %+v", reply)
	}
	a.finish(c, "before", 1, good)
	job, err := w.client.Job(w.ctx, run.Jobs[0].ID)
	if err != nil || job.State != "Succeeded" || job.Attempts != 1 || job.Retries != nil {
		t.Errorf("the job: %+v, %v", job, err)
	}
}

func TestACancelReachesTheAgent(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	run := w.submit("a", "b")
	c := a.take()
	_, err = w.client.CancelRun(w.ctx, run.ID)
	w.must(err)
	if m := hear[*forge.Cancel](a); m.Attempt != c.Attempt || m.Reason != forge.CancelUser {
		t.Errorf("told %+v", m)
	}
	a.say(&forge.CancelAck{Attempt: c.Attempt, Lease: c.Lease})
	a.finish(c, "", 0, forge.Result{Class: forge.Cancelled})
	var end api.Run
	for e, err := range w.client.Watch(w.ctx, run.ID) {
		w.must(err)
		if e.Name == api.EventEnd {
			w.must(e.Decode(&end))
		}
	}
	if end.State != "Cancelled" || end.Counts["Cancelled"] != 2 || *end.ExitCode != 2 {
		t.Errorf("the end: %+v", end)
	}
}

func TestARevokedRunnerIsClosedAndStaysOut(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{Name: "r1"})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	_, err = w.client.SetRunner(w.ctx, "r1", api.RunnerRevoke)
	w.must(err)
	if reason, _ := a.closed(); reason != forge.CloseRevoked {
		t.Errorf("closed for %v", reason)
	}
	var end *transport.CloseError
	if err := a.dial(); err == nil {
		t.Error("it connects again")
	} else if !errors.As(err, &end) {
		t.Errorf("refused with %v", err)
	}
}

func TestADisabledRunnerIsClosedUntilItIsEnabled(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{Name: "r1"})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	w.submit("a")
	c := a.take()
	_, err = w.client.SetRunner(w.ctx, "r1", api.RunnerDisable)
	w.must(err)
	if m := hear[*forge.Cancel](a); m.Attempt != c.Attempt || m.Reason != forge.CancelDisabled {
		t.Errorf("told %+v", m)
	}
	if reason, _ := a.closed(); reason != forge.CloseRunnerDisabled {
		t.Errorf("closed for %v", reason)
	}
	w.must(a.dial())
	a.register()
	if m := hear[*forge.RegistrationRejected](a); m.Reason != forge.CloseRunnerDisabled {
		t.Errorf("registering: %v", m.Reason)
	}
	_, err = w.client.SetRunner(w.ctx, "r1", api.RunnerEnable)
	w.must(err)
	a.connect()
}

// versions are the terms of a peer that speaks these minors of the first major.
func versions(least, most uint16) protocol.Terms {
	terms := protocol.OwnTerms()
	terms.Versions = protocol.Ranges{{Major: 1, MinMinor: least, MaxMinor: most}}
	return terms
}

// TestAnAgentOfAnotherVersionIsListedWithTheReason: case B43. It is refused before it could take a job.
func TestAnAgentOfAnotherVersionIsListedWithTheReason(t *testing.T) {
	w := newWorld(t)
	w.cfg.Terms = versions(2, 3)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{Name: "r1"})
	w.must(err)
	a := w.enroll(token.Token)
	run := w.submit("a")
	for _, one := range []struct {
		terms              protocol.Terms
		state, reason, why string
	}{
		{versions(0, 1), "too old", "TOO_OLD", "install a newer agent"},
		{versions(4, 9), "too new", "TOO_NEW", "update this daemon"},
	} {
		a.terms = one.terms
		if err := a.dial(); err == nil {
			t.Fatalf("an agent that is %s is let in", one.state)
		}
		r, err := w.client.Runner(w.ctx, "r1")
		for err == nil && r.State != one.state { // the agent hears of it first
			r, err = w.client.Runner(w.ctx, "r1")
		}
		if err != nil || r.Refused == nil || r.Refused.Reason != one.reason || r.Refused.At == nil {
			t.Fatalf("listed as %+v, %v", r, err)
		}
		for _, part := range []string{"server supports 1.2-1.3", "agent supports " + one.terms.Versions.String(), one.why} {
			if !strings.Contains(r.Refused.Why, part) {
				t.Errorf("%q does not say %q", r.Refused.Why, part)
			}
		}
		if why, err := w.client.ExplainRunner(w.ctx, "r1"); err != nil || why.Summary != r.Refused.Why {
			t.Errorf("why: %+v, %v", why, err)
		}
	}
	job, err := w.client.Job(w.ctx, run.Jobs[0].ID)
	if err != nil || job.Attempts != 0 {
		t.Errorf("the job was touched: %+v, %v", job, err)
	}
	a.terms = versions(1, 2)
	a.connect()
	if r, err := w.client.Runner(w.ctx, "r1"); err != nil || r.State != "online" || r.Refused != nil {
		t.Errorf("once let in it is %+v, %v", r, err)
	}
}

// People and agents come in by different doors, and neither opens to the other.
func TestTheInterfaceForPeopleIsNotTheRoadOfAgents(t *testing.T) {
	w := newWorld(t)
	w.begin()
	dialer := quic.NewDialer(&tls.Config{NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13}, quic.Options{})
	defer func() { _ = dialer.Close() }()
	// The daemon has to refuse, not this client: that is before anybody looks at a certificate.
	if _, err := dialer.Dial(w.ctx, w.at.Agents); err == nil || !strings.Contains(err.Error(), "(remote)") {
		t.Errorf("the road of agents speaks HTTP: %v", err)
	}
	tcp, err := net.Dial("tcp", strings.TrimPrefix(w.at.HTTP, "http://"))
	w.must(err)
	defer func() { _ = tcp.Close() }()
	_, err = tcp.Write([]byte{0, 0, 0, 4, 1, 2, 3, 4, '\r', '\n', '\r', '\n'})
	w.must(err)
	answer, err := io.ReadAll(tcp)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("a frame of agents is answered %q, %v", answer, err)
	}
}

func TestTheFiguresTellOfPressureRejectionsAndReconnects(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{Name: "r1"})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	a.connect() // the same process again
	run := w.submit("a")
	offer := hear[*forge.LeaseOffer](a)
	a.say(&forge.LeaseReject{Context: offer.Context, Reason: forge.RejectDiskInsufficient})
	load := forge.ResourceSummary{
		Total: forge.Resources{CPU: 8000, Memory: forge.GiB, Disk: forge.GiB, Slots: 4}, Pressure: forge.PressureDisk,
	}
	a.nonce++
	a.say(&forge.Heartbeat{Runner: a.identity.Runner(), Session: a.session, Nonce: a.nonce, State: forge.AgentOnline, Resources: load})
	hear[*forge.HeartbeatAck](a)
	text := w.figures("forgeyard_runners_under_pressure 1")
	for _, line := range []string{
		`forgeyard_agent_lease_rejects_total{reason="` + forge.RejectDiskInsufficient.String() + `"} 1`,
		"forgeyard_transport_reconnects_total 1", "forgeyard_runners_connected 1", "forgeyard_jobs_waiting 1",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is not said", line)
		}
	}
	for _, id := range []string{run.ID, run.Jobs[0].ID, offer.Context.Attempt.String(), a.identity.Runner().String()} {
		if strings.Contains(text, id) {
			t.Error("an id is in the figures")
		}
	}
	r, err := w.client.ExplainRunner(w.ctx, "r1")
	if err != nil || r.LastReject == nil || r.LastReject.Reason != "its disk has too little room" {
		t.Errorf("why: %+v, %v", r, err)
	}
}

// Of every turn it is told how long it took, once.
func TestTheFiguresTellHowLongEachTurnTook(t *testing.T) {
	w := newWorld(t)
	w.begin()
	token, err := w.client.CreateToken(w.ctx, &api.TokenRequest{})
	w.must(err)
	a := w.enroll(token.Token)
	a.connect()
	run := w.submit("a")
	c := a.take()
	_, err = w.client.CancelRun(w.ctx, run.ID)
	w.must(err)
	hear[*forge.Cancel](a)
	a.say(&forge.CancelAck{Attempt: c.Attempt, Lease: c.Lease})
	for seq, phase := range []forge.AttemptState{forge.AttemptRunning, forge.AttemptUploading, forge.AttemptUploading} {
		a.say(&forge.PhaseChange{Context: c, Seq: uint64(min(seq+1, 2)), Phase: phase}) // each again: its answer could have been lost
		hear[*forge.PhaseAck](a)
	}
	a.finish(c, "", 0, forge.Result{Class: forge.Cancelled})
	text := w.figures("forgeyard_attempt_upload_seconds_count 1")
	for _, turn := range []string{"accept", "prepare", "cancel", "execution"} {
		if line := "\nforgeyard_attempt_" + turn + "_seconds_count 1\n"; !strings.Contains(text, line) {
			t.Errorf("not said:%s", line)
		}
	}
	second := w.submit("b")
	a.finish(a.take(), "", 0, good)
	text = w.figures("forgeyard_attempt_accept_seconds_count 2")
	if !strings.Contains(text, "\nforgeyard_attempt_cancel_seconds_count 1\n") {
		t.Errorf("run %s counts as cancelled", second.ID)
	}
}

func TestTheFolderIsItsOwnersAlone(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.must(filepath.WalkDir(w.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && e.Name() != "ca.crt" {
			t.Errorf("%s has %v", path, info.Mode())
		}
		return err
	}))
	for _, name := range []string{"lock", "state.db", "logs", "trust", "admin.token", "http.sock"} {
		if _, err := os.Stat(filepath.Join(w.cfg.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	first, err := os.ReadFile(w.at.TokenFile)
	w.must(err)
	if _, err := w.over(w.at.HTTP, w.at.TokenFile).Runs(w.ctx, api.RunFilter{}, api.Page{}); err != nil {
		t.Errorf("with the token: %v", err)
	}
	if _, err := w.over(w.at.HTTP, "").Runs(w.ctx, api.RunFilter{}, api.Page{}); err == nil {
		t.Error("without it as well")
	}
	w.stop()
	w.begin()
	if again, err := os.ReadFile(w.at.TokenFile); err != nil || string(again) != string(first) {
		t.Errorf("the token has changed: %v", err)
	}
}

func TestASecondDaemonOnTheFolderIsRefused(t *testing.T) {
	w := newWorld(t)
	w.begin()
	second, err := daemon.New(w.cfg)
	w.must(err)
	if err := second.Run(w.ctx); !errors.Is(err, store.ErrLocked) {
		t.Errorf("got %v", err)
	}
	if _, err := w.client.Ready(w.ctx); err != nil {
		t.Errorf("and the first: %v", err)
	}
}

func TestAStartThatFailsNamesItsPartAndLeavesNothingOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	w := newWorld(t)
	free := w.cfg.HTTP
	w.cfg.HTTP = taken.Addr().String()
	d, err := daemon.New(w.cfg)
	w.must(err)
	if err := d.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "start http: the address "+w.cfg.HTTP) {
		t.Errorf("got %v", err)
	}
	w.cfg.HTTP = free
	w.begin() // the folder's lock, the socket and the port were given back
	w.stop()
	w.must(os.Chmod(w.at.TokenFile, 0o644))
	d, err = daemon.New(w.cfg)
	w.must(err)
	if err := d.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "others can read") {
		t.Errorf("a token that others can read: %v", err)
	}
}

func TestSettingsThatDoNotFitAreNamedBeforeAnythingIsOpened(t *testing.T) {
	for want, cfg := range map[string]daemon.Config{
		"folder is missing":  {},
		"address for agents": {Dir: "x", Listen: "nowhere"},
		"HTTP interface":     {Dir: "x", HTTP: "7480"},
		"lease policy":       {Dir: "x", Policy: forge.LeasePolicy{TTL: time.Second}},
		"lifetime":           {Dir: "x", Lifetime: -1},
	} {
		if _, err := daemon.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestReloadTakesTheTokenAndNamesWhatTakesARestart(t *testing.T) {
	w := newWorld(t)
	w.begin()
	old := w.over(w.at.HTTP, w.at.TokenFile)
	w.must(os.WriteFile(w.at.TokenFile, []byte("another-token\n"), 0o600))
	next := w.cfg
	next.Listen, next.Policy = "127.0.0.1:9", forge.LeasePolicy{TTL: time.Hour}
	restart, err := w.daemon.Reload(next)
	if err != nil || !slices.Equal(restart, []string{"agent_transport.listen", "lease"}) {
		t.Errorf("got %v, %v", restart, err)
	}
	if _, err := w.over(w.at.HTTP, w.at.TokenFile).Version(w.ctx); err != nil {
		t.Errorf("the new token: %v", err)
	}
	if _, err := old.Version(w.ctx); err == nil {
		t.Error("the old token is still good")
	}
}

func TestAFolderWithALongPathGoesWithoutItsSocket(t *testing.T) {
	w := newWorld(t)
	w.cfg.Dir = filepath.Join(w.cfg.Dir, strings.Repeat("long", 25))
	d, err := daemon.New(w.cfg)
	w.must(err)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-d.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	if at := d.Addresses(); at.Socket != "" || at.HTTP == "" {
		t.Errorf("at %+v", at)
	}
	cancel()
	w.must(<-ended)
}
