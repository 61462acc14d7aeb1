package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

func id[T ~struct{ forge.ULID }](n byte) T { return forge.MakeID[T](forge.ULID{0: 1, 15: n}) }

func attempt(spec []byte) forge.AttemptContext {
	return forge.AttemptContext{
		Job: id[forge.JobID](1), Attempt: id[forge.AttemptID](2), Lease: id[forge.LeaseID](3), Spec: forge.SpecID(spec),
		Runner: id[forge.RunnerID](4), Session: id[forge.AgentSessionID](5),
	}
}

func capabilities() forge.Capabilities {
	return forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema,
		Platform:      forge.Platform{OS: "linux", Arch: "amd64", Version: "Debian 13"},
		Resources:     forge.Resources{CPU: 4000, Memory: 8 * forge.GiB, Disk: 100 * forge.GiB, Slots: 3},
		Toolchains:    []forge.Toolchain{{ID: "go", Version: "1.26.0", Source: forge.ToolchainManaged, Verified: true, Warm: true}},
		Sandboxes:     []forge.Sandbox{{Kind: forge.SandboxNative, Levels: []string{"userns", "seccomp"}}},
		Devices:       []forge.DeviceCount{{Kind: "gpu", Count: 1}},
		Labels:        []string{"site=a"}, Features: []string{forge.FeatureHostNetwork},
	}
}

func completion() *forge.Completion {
	c := &forge.Completion{
		Context: attempt([]byte("spec")), Message: id[forge.MessageID](9), CancelSeen: true, Capture: forge.Succeeded,
		Result: forge.Result{
			Class: forge.ExitCode, ExitCode: 3, Signal: 9, Limit: 1 << 40, Peak: 1<<40 + 1, Duration: 1234567891,
			Steps: []forge.StepResult{{Index: 1, Class: forge.ExitCode, ExitCode: 3, Signal: 15, Start: 17, Duration: 5}},
		},
		Outputs: []forge.OutputRef{{Output: 1, Ref: digest.RefOf([]byte("x")), Tree: true}},
		Log:     forge.LogSeal{Last: 7, Bytes: 99, Hash: digest.Of([]byte("log"))},
	}
	c.Hash = c.ResultHash()
	return c
}

// messages has at least one of every domain message, filled as the cores fill them.
func messages() []forge.Message {
	caps, ctx, spec := capabilities(), attempt([]byte("spec")), []byte("spec")
	runner, session := ctx.Runner, ctx.Session
	part := forge.Resources{CPU: 500, Memory: forge.GiB, Disk: forge.GiB, Slots: 1}
	free := forge.Resources{CPU: 3000, Memory: 6 * forge.GiB, Disk: 98 * forge.GiB, Slots: 1}
	verdicts := []forge.LeaseVerdict{
		{Lease: ctx.Lease, Verdict: forge.VerdictContinue, HardTTL: time.Minute, Cancel: forge.CancelUser},
		{Lease: ctx.Lease, Verdict: forge.VerdictCancel, Cancel: forge.CancelMaxLifetime},
		{Lease: ctx.Lease, Verdict: forge.VerdictStale},
	}
	return []forge.Message{
		&forge.Register{
			Runner: runner, Session: session, StateFolder: id[forge.StateFolderID](6), Boot: id[forge.BootID](7),
			StartCounter: 1, TransportSeq: 2, Version: "0.1.0", Capabilities: caps, CapabilityDigest: caps.Digest(),
		},
		&forge.RegistrationAccepted{Policy: forge.DefaultLeasePolicy()},
		&forge.RegistrationAccepted{Policy: forge.DefaultLeasePolicy(), ServerTime: 12, Transport: id[forge.TransportSessionID](8)},
		&forge.RegistrationRejected{Reason: forge.CloseCloneSuspected},
		&forge.Resync{Runner: runner, Session: session, Nonce: 4, CapabilityDigest: caps.Digest(), Attempts: []forge.ResyncItem{{
			Job: ctx.Job, Attempt: ctx.Attempt, Lease: ctx.Lease, Spec: ctx.Spec, Phase: forge.AttemptRunning, EventSeq: 2, LogNext: 5,
		}}},
		&forge.ResyncReply{Nonce: 4, Verdicts: verdicts},
		&forge.RecoverAttempts{Runner: runner, Session: session, Previous: []forge.RecoveredAttempt{
			{Context: ctx, Killed: true},
			{Context: ctx, Completion: id[forge.MessageID](1), Hash: digest.Of(spec)},
		}},
		&forge.RecoveryDecisions{Decisions: []forge.RecoveryDecision{{Attempt: ctx.Attempt, Verdict: forge.RecoveryWaits}}},
		&forge.LeaseOffer{Context: ctx, Spec: spec},
		&forge.LeaseOffer{Context: ctx, SpecRef: digest.RefOf(spec)},
		&forge.LeaseAccept{Context: ctx, Nonce: 3},
		&forge.LeaseAcceptAck{Lease: ctx.Lease, Nonce: 3, Granted: true, HardTTL: time.Minute, Cancel: forge.CancelUser},
		&forge.LeaseAcceptAck{Lease: ctx.Lease, Nonce: 3, Refused: forge.RefusedExpired},
		&forge.LeaseReject{Context: ctx, Reason: forge.RejectSpecMismatch},
		&forge.Heartbeat{Runner: runner, Session: session, Nonce: 1, State: forge.AgentOnline, CapabilityDigest: caps.Digest()},
		&forge.Heartbeat{
			Runner: runner, Session: session, Nonce: 1, State: forge.AgentDraining, CapabilityDigest: caps.Digest(),
			Attempts:  []forge.HeartbeatItem{{Attempt: ctx.Attempt, Lease: ctx.Lease, Phase: forge.AttemptSucceeded}},
			Resources: forge.ResourceSummary{Total: caps.Resources, Reserved: part, Active: part, Free: free, Pressure: forge.PressureDisk},
		},
		&forge.HeartbeatAck{Nonce: 1, Verdicts: verdicts},
		&forge.PhaseChange{Context: ctx, Seq: 2, Phase: forge.AttemptPreparing},
		&forge.PhaseAck{Attempt: ctx.Attempt, Seq: 2},
		&forge.LogFinal{Context: ctx, Seal: forge.LogSeal{Last: 3, Bytes: 100, Hash: digest.Of(spec)}},
		&forge.LogFinal{Context: ctx},
		&forge.LogFinalAck{Attempt: ctx.Attempt},
		&forge.LogAck{Attempt: ctx.Attempt, Next: 4},
		completion(),
		&forge.CompletionAck{Attempt: ctx.Attempt, Message: id[forge.MessageID](9), Answer: forge.CompletionDuplicate},
		&forge.Cancel{Attempt: ctx.Attempt, Lease: ctx.Lease, Reason: forge.CancelUser},
		&forge.CancelAck{Attempt: ctx.Attempt, Lease: ctx.Lease},
		&forge.CapabilityUpdate{Runner: runner, Session: session, Capabilities: caps, CapabilityDigest: caps.Digest()},
		&forge.Error{Code: forge.ErrorNotYetRef, Retry: forge.RetryDelayed, Text: "an output is not readable yet"},
		&forge.GoAway{After: time.Second, Spread: time.Minute, Endpoints: []string{"quic://other.example:7443"}},
		&forge.Drain{CancelActive: true},
		&forge.Resume{},
		&forge.RefreshCapabilities{},
	}
}

// frameOf puts a message into a frame as a core would.
func frameOf(m forge.Message) forge.Frame {
	f := forge.Frame{ID: id[forge.MessageID](9), Body: m}
	if _, answer := m.(*forge.HeartbeatAck); answer {
		f.Re = id[forge.MessageID](10)
	}
	return f
}

func TestEveryDomainFrameSurvivesItsBytes(t *testing.T) {
	var stream []byte
	for _, m := range messages() {
		var err error
		if stream, err = wire.EncodeFrame(stream, frameOf(m), protocol.Current, 1_700_000_000_000); err != nil {
			t.Fatal(err)
		}
	}
	frames := protocol.NewFrameReader(bytes.NewReader(stream))
	for _, m := range messages() {
		header, err := frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		body, err := frames.Body()
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeFrame(header, body)
		if err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		if diff := cmp.Diff(frameOf(m), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%T: -sent +received:\n%s", m, diff)
		}
	}
	if _, err := frames.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v, want io.EOF", err)
	}
}
