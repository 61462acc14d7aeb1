package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

// TestEveryFieldOfADomainMessageTravels: a field that nobody converts would be zero on the other side. The messages of
// TestEveryDomainFrameSurvivesItsBytes come back as they were; this makes sure that they leave no field out.
func TestEveryFieldOfADomainMessageTravels(t *testing.T) {
	filled, all := map[string]bool{}, map[string]bool{}
	for _, m := range messages() {
		v := reflect.ValueOf(m).Elem()
		fields(v.Type(), v.Type().Name(), all)
		fill(v, v.Type().Name(), filled)
	}
	for path := range all {
		if !filled[path] {
			t.Errorf("no message of this test has anything in %s", path)
		}
	}
	if len(all) < 100 {
		t.Errorf("only %d fields were found", len(all))
	}
}

// fields lists the leaves of a type.
func fields(t reflect.Type, path string, all map[string]bool) {
	switch {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			fields(t.Field(i).Type, path+"."+t.Field(i).Name, all)
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		fields(t.Elem(), path+"[]", all)
	default:
		all[path] = true
	}
}

// fill notes the leaves that hold something.
func fill(v reflect.Value, path string, filled map[string]bool) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name, filled)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			fill(v.Index(i), path+"[]", filled)
		}
	case !v.IsZero():
		filled[path] = true
	}
}

// travel sends a wire struct that a newer peer might have made, and returns what its receiver understands.
func travel(t *testing.T, w protocol.Message) (forge.Message, error) {
	t.Helper()
	s := protocoltest.Sample{Name: "typical", Message: w}
	raw, err := s.Frame()
	if err != nil {
		return nil, err
	}
	header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	f, err := wire.DecodeFrame(header, raw[protocol.HeaderBytes:])
	return f.Body, err
}

// change returns a typical message with something changed.
func change[M protocol.Message](f func(M)) protocol.Message {
	var none M
	w := protocoltest.Samples(none.Tag().Type)[1].Message.(M)
	f(w)
	return w
}

// TestUnknownNumbersFollowTheRuleOfTheirEnumeration has one case for each enumeration that does not refuse the message;
// the others stand with their messages.
func TestUnknownNumbersFollowTheRuleOfTheirEnumeration(t *testing.T) {
	for name, test := range map[string]struct {
		w    protocol.Message
		got  func(forge.Message) any
		want any
	}{
		"a phase is kept": {
			change(func(w *agentv1.PhaseChangeV1) { w.Phase = 200 }),
			func(m forge.Message) any { return m.(*forge.PhaseChange).Phase }, forge.AttemptState(0),
		},
		"a phase in a heartbeat is kept": {
			change(func(w *agentv1.HeartbeatV1) { w.Attempts[0].Phase = 12 }),
			func(m forge.Message) any { return m.(*forge.Heartbeat).Attempts[0].Phase }, forge.AttemptState(0),
		},
		"a phase in a resync is kept": {
			change(func(w *agentv1.ResyncV1) { w.Attempts[0].Phase = 12 }),
			func(m forge.Message) any { return m.(*forge.Resync).Attempts[0].Phase }, forge.AttemptState(0),
		},
		"an agent's state was not said": {
			change(func(w *agentv1.HeartbeatV1) { w.State = 9 }),
			func(m forge.Message) any { return m.(*forge.Heartbeat).State }, forge.AgentState(0),
		},
		"a pressure is critical": {
			change(func(w *agentv1.HeartbeatV1) { w.Resources.Pressure = 7 }),
			func(m forge.Message) any { return m.(*forge.Heartbeat).Resources.Pressure }, forge.PressureCritical,
		},
		"a rejection is for another reason": {
			change(func(w *agentv1.LeaseRejectV1) { w.Reason = 11 }),
			func(m forge.Message) any { return m.(*forge.LeaseReject).Reason }, forge.RejectOther,
		},
		"a rejection without a reason too": {
			change(func(w *agentv1.LeaseRejectV1) { w.Reason = 0 }),
			func(m forge.Message) any { return m.(*forge.LeaseReject).Reason }, forge.RejectOther,
		},
		"a refusal is one": {
			change(func(w *agentv1.LeaseAcceptAckV1) {
				w.Answer = agentv1.AcceptAnswerV1{Refused: &agentv1.RefusalV1{Reason: 5}}
			}),
			func(m forge.Message) any { return m.(*forge.LeaseAcceptAck).Refused }, forge.RefusedUnknown,
		},
		"a cancel stops, without a user's word": {
			change(func(w *agentv1.CancelV1) { w.Reason = 4 }),
			func(m forge.Message) any { return m.(*forge.Cancel).Reason }, forge.CancelDisabled,
		},
		"an error is internal": {
			change(func(w *protocol.ErrorV1) { w.Code = 7 }),
			func(m forge.Message) any { return m.(*forge.Error).Code }, forge.ErrorInternal,
		},
		"an error is retried with backoff": {
			change(func(w *protocol.ErrorV1) { w.Retry = 8 }),
			func(m forge.Message) any { return m.(*forge.Error).Retry }, forge.RetryBackoff,
		},
		"a close code is the mildest of its hundred": {
			change(func(w *agentv1.RegistrationRejectedV1) { w.Code = 0x2ff }),
			func(m forge.Message) any { return m.(*forge.RegistrationRejected).Reason }, forge.CloseAuthFailed,
		},
	} {
		m, err := travel(t, test.w)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, test.got(m)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestEveryDomainValueHasANumber sends each value of each enumeration and gets the same back.
func TestEveryDomainValueHasANumber(t *testing.T) {
	ctx := attempt([]byte("spec"))
	every(t, func(n uint8) forge.Message {
		return &forge.PhaseChange{Context: ctx, Seq: 1, Phase: forge.AttemptState(n)}
	}, func(n uint8) string { return forge.AttemptState(n).String() })
	every(t, func(n uint8) forge.Message {
		return &forge.Heartbeat{Runner: ctx.Runner, Session: ctx.Session, Nonce: 1, State: forge.AgentState(n)}
	}, func(n uint8) string { return forge.AgentState(n).String() })
	every(t, func(n uint8) forge.Message {
		return &forge.Heartbeat{
			Runner: ctx.Runner, Session: ctx.Session, Nonce: 1,
			Resources: forge.ResourceSummary{Pressure: forge.ResourcePressure(n)},
		}
	}, func(n uint8) string { return forge.ResourcePressure(n).String() })
	every(t, func(n uint8) forge.Message {
		return &forge.LeaseReject{Context: ctx, Reason: forge.RejectReason(n)}
	}, func(n uint8) string { return forge.RejectReason(n).String() })
	every(t, func(n uint8) forge.Message {
		return &forge.LeaseAcceptAck{Lease: ctx.Lease, Nonce: 1, Refused: forge.RefuseReason(n)}
	}, func(n uint8) string { return forge.RefuseReason(n).String() })
	every(t, func(n uint8) forge.Message {
		return &forge.Cancel{Attempt: ctx.Attempt, Lease: ctx.Lease, Reason: forge.CancelReason(n)}
	}, func(n uint8) string { return forge.CancelReason(n).String() })
	every(t, func(n uint8) forge.Message {
		if n == uint8(forge.CloseLost) || n == uint8(forge.CloseNormal) {
			n++ // neither is ever the reason of a rejection
		}
		return &forge.RegistrationRejected{Reason: forge.CloseReason(n)}
	}, func(n uint8) string { return forge.CloseReason(n + 1).String() })
	every(t, func(n uint8) forge.Message {
		c := completion()
		c.Result.Class, c.Capture = forge.Class(n), forge.Class(n)
		c.Hash = c.ResultHash()
		return c
	}, func(n uint8) string {
		if !forge.Class(n).Valid() {
			return forge.Class(0).String() // of no attempt
		}
		return forge.Class(n).String()
	})
}

// every goes through the numbers from 1 to the last that has a name.
func every(t *testing.T, message func(n uint8) forge.Message, name func(n uint8) string) {
	t.Helper()
	n := uint8(1)
	for ; !strings.HasPrefix(name(n), "invalid"); n++ {
		want := message(n)
		w, err := wire.FromDomain(want)
		if err != nil {
			t.Errorf("%s: %v", name(n), err)
			continue
		}
		got, err := travel(t, w)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -sent +received:\n%s", name(n), err, diff)
		}
	}
	if n < 4 {
		t.Errorf("only %d values were found", n-1)
	}
}

func TestWhatTheDomainHasNoMessageForIsNoDomainFrame(t *testing.T) {
	for _, tag := range wire.Tags() {
		w := protocoltest.Samples(tag.Type)[1].Message
		_, isDomain := w.(protocol.Domain)
		_, err := travel(t, w)
		var v *protocol.Violation
		if isDomain != (err == nil) || err != nil && (!errors.As(err, &v) || v.Fault != protocol.FaultState) {
			t.Errorf("%v: %v", tag, err)
		}
	}
}

func TestACoreCannotSendWhatItsPeerWouldRefuse(t *testing.T) {
	dst := []byte("before")
	for name, m := range map[string]forge.Message{
		"nothing":              nil,
		"a lease without time": &forge.LeaseAcceptAck{Lease: id[forge.LeaseID](1), Nonce: 1, Granted: true},
		"a negative time":      &forge.GoAway{After: -1},
		"another runner's attempt": &forge.RecoverAttempts{
			Runner: id[forge.RunnerID](99), Session: id[forge.AgentSessionID](5),
			Previous: []forge.RecoveredAttempt{{Context: attempt(nil)}},
		},
		"a changed completion": func() forge.Message { c := completion(); c.CancelSeen = false; return c }(),
	} {
		got, err := wire.EncodeFrame(dst, forge.Frame{ID: id[forge.MessageID](9), Body: m}, protocol.Current, 0)
		if err == nil || string(got) != "before" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestNumbersWithoutADomainNameMeanWhatTheySay: the names of these stand in a table of their own, so a number and its
// name could part from the value.
func TestNumbersWithoutADomainNameMeanWhatTheySay(t *testing.T) {
	for n, want := range []forge.CompletionAnswer{
		forge.CompletionAccepted, forge.CompletionDuplicate, forge.CompletionStale, forge.CompletionInvalid,
	} {
		m, err := travel(t, change(func(w *agentv1.CompletionAckV1) { w.Answer = agentv1.AnswerV1(n + 1) }))
		if err != nil || m.(*forge.CompletionAck).Answer != want {
			t.Errorf("%v: %v, %v", agentv1.AnswerV1(n+1), m, err)
		}
	}
	for n, want := range []forge.RecoveryVerdict{forge.RecoveryApplied, forge.RecoveryEnded, forge.RecoveryWaits} {
		m, err := travel(t, change(func(w *agentv1.RecoveryDecisionsV1) { w.Decisions[0].Verdict = agentv1.RecoveryVerdictV1(n + 1) }))
		if err != nil || m.(*forge.RecoveryDecisions).Decisions[0].Verdict != want {
			t.Errorf("%v: %v, %v", agentv1.RecoveryVerdictV1(n+1), m, err)
		}
	}
	for n, want := range []forge.ErrorCode{
		forge.ErrorUnsupported, forge.ErrorNotYetLog, forge.ErrorNotYetRef, forge.ErrorRate, forge.ErrorInternal,
		forge.ErrorRefused,
	} {
		m, err := travel(t, change(func(w *protocol.ErrorV1) { w.Code = protocol.ErrorCodeV1(n + 1) }))
		if err != nil || m.(*forge.Error).Code != want {
			t.Errorf("%v: %v, %v", protocol.ErrorCodeV1(n+1), m, err)
		}
	}
	for n, want := range []forge.RetryClass{
		forge.RetryStop, forge.RetryOperator, forge.RetryBackoff, forge.RetryElsewhere, forge.RetryDelayed, forge.RetryRecover,
		forge.RetryConnection,
	} {
		m, err := travel(t, change(func(w *protocol.ErrorV1) { w.Retry = protocol.RetryV1(n + 1) }))
		if err != nil || m.(*forge.Error).Retry != want {
			t.Errorf("%v: %v, %v", protocol.RetryV1(n+1), m, err)
		}
	}
}
