package protocol_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

func TestEveryCloseReasonHasACodeAndBack(t *testing.T) {
	seen := map[protocol.CloseCode]forge.CloseReason{}
	for r := forge.CloseNormal; r.Valid(); r++ {
		if r == forge.CloseLost {
			continue // nothing is said when a connection is merely gone
		}
		code := protocol.CloseCodeOf(r)
		if other, twice := seen[code]; twice {
			t.Errorf("%v and %v have the code %v", r, other, code)
		}
		seen[code] = r
		if code.Reason() != r || !code.Known() {
			t.Errorf("%v is sent as %v and read as %v", r, code, code.Reason())
		}
	}
	if code := protocol.CloseCodeOf(forge.CloseLost); code.Reason() != forge.CloseInternal {
		t.Errorf("a lost connection has the code %v", code)
	}
}

func TestAnUnknownCloseCodeReadsAsTheMildestOfItsHundred(t *testing.T) {
	for code, want := range map[protocol.CloseCode]forge.RetryClass{
		0x1aa: forge.RetryBackoff, 0x2aa: forge.RetryOperator, 0x3aa: forge.RetryOperator, 0x4aa: forge.RetryConnection,
		0x5aa: forge.RetryBackoff, 0x006: forge.RetryBackoff, 0xffffffff: forge.RetryBackoff,
	} {
		if got := code.Reason().Retry(); got != want || code.Known() {
			t.Errorf("%v: retry class %v, want %v", code, got, want)
		}
	}
}

func TestResetCodesSayWhatToDo(t *testing.T) {
	for _, c := range protocol.ResetCodes() {
		if !c.Known() || strings.HasPrefix(c.String(), "0x") || c.Retry() == 0 {
			t.Errorf("%x: %v, %v", uint32(c), c, c.Retry())
		}
	}
	if c := protocol.ResetCode(0x100c); c.Known() || c.Retry() != protocol.ResetAgain {
		t.Errorf("a code that a newer peer added: %v", c.Retry())
	}
}

func TestWhatIsForbiddenLooksLikeWhatIsNotThere(t *testing.T) {
	for _, c := range protocol.ResetCodes() {
		want := c
		if c == protocol.ResetNotAuthorized {
			want = protocol.ResetNotFound
		}
		if c.Outward() != want {
			t.Errorf("%v is sent as %v", c, c.Outward())
		}
	}
}

// TestAViolationEndsWhatItMustAndNoMore is the table of what a receiver does.
func TestAViolationEndsWhatItMustAndNoMore(t *testing.T) {
	const control, log, cas = protocol.StreamControl, protocol.StreamLog, protocol.StreamCASUpload
	for _, test := range []struct {
		fault    protocol.Fault
		on       protocol.StreamKind
		severity protocol.Severity
		reason   forge.CloseReason
		reset    protocol.ResetCode
	}{
		{protocol.FaultMalformed, control, protocol.SeveritySession, forge.CloseMalformed, 0},
		{protocol.FaultMalformed, log, protocol.SeverityStream, 0, protocol.ResetMalformed},
		{protocol.FaultMalformed, cas, protocol.SeverityStream, 0, protocol.ResetMalformed},
		{protocol.FaultTooLarge, control, protocol.SeveritySession, forge.CloseFrameTooLarge, 0},
		{protocol.FaultTooLarge, log, protocol.SeverityStream, 0, protocol.ResetLimit},
		{protocol.FaultHeader, log, protocol.SeverityStream, 0, protocol.ResetMalformed},
		{protocol.FaultHeader, control, protocol.SeverityStream, 0, protocol.ResetMalformed},
		{protocol.FaultUnsupported, control, protocol.SeveritySession, forge.CloseUnsupported, 0},
		{protocol.FaultState, log, protocol.SeveritySession, forge.CloseBadState, 0},
		{protocol.FaultRole, log, protocol.SeveritySecurity, forge.CloseRoleViolation, 0},
		{protocol.FaultVersion, control, protocol.SeveritySession, forge.CloseProtocol, 0},
		{protocol.FaultRate, control, protocol.SeveritySession, forge.CloseRate, 0},
		{protocol.FaultRate, log, protocol.SeverityStream, 0, protocol.ResetLimit},
		{protocol.FaultLate, control, protocol.SeveritySession, forge.CloseRegisterTimeout, 0},
		{protocol.FaultLate, log, protocol.SeverityStream, 0, protocol.ResetTimeout},
	} {
		v := (&protocol.Violation{Fault: test.fault}).On(test.on)
		if v.Severity() != test.severity {
			t.Errorf("%v on %v: severity %v, want %v", test.fault, test.on, v.Severity(), test.severity)
		}
		if v.Severity() == protocol.SeverityStream && v.Reset() != test.reset {
			t.Errorf("%v on %v: reset %v, want %v", test.fault, test.on, v.Reset(), test.reset)
		}
		if v.Severity() != protocol.SeverityStream && v.Reason() != test.reason {
			t.Errorf("%v on %v: close %v, want %v", test.fault, test.on, v.Reason(), test.reason)
		}
	}
}

func TestAMessageInSomebodyElsesNameIsASecurityViolation(t *testing.T) {
	runner, session := forge.RunnerID{ULID: forge.ULID{1}}, forge.AgentSessionID{ULID: forge.ULID{2}}
	speaks := func(r, s byte) protocol.Message {
		return speaker{peer: protocol.PeerV1{Runner: [16]byte{r}, Session: [16]byte{s}}}
	}
	for _, test := range []struct {
		m    protocol.Message
		s    forge.AgentSessionID
		good bool
	}{
		{speaks(1, 2), session, true},
		{speaks(1, 9), forge.AgentSessionID{}, true}, // before its registration a process says which one it is
		{speaks(9, 2), session, false},
		{speaks(9, 2), forge.AgentSessionID{}, false},
		{speaks(1, 9), session, false},
		{&protocol.GoAwayV1{}, session, true},
	} {
		err := protocol.CheckSpeaker(test.m, runner, test.s)
		var v *protocol.Violation
		if (err == nil) != test.good || err != nil && (!errors.As(err, &v) || v.Severity() != protocol.SeveritySecurity) {
			t.Errorf("%v: %v, want good = %v", test.m, err, test.good)
		}
	}
}

type speaker struct {
	protocol.ErrorV1
	peer protocol.PeerV1
}

func (s speaker) Speaker() protocol.PeerV1 { return s.peer }
func (s speaker) Tag() protocol.Tag        { return s.ErrorV1.Tag() }
func (s speaker) Validate() error          { return s.ErrorV1.Validate() }

func TestAnotherVersionThanTheNegotiatedOneIsAViolation(t *testing.T) {
	env := protocol.EnvelopeV1{Protocol: protocol.Version{Major: 1, Minor: 2}, MessageID: [16]byte{1}}
	if err := env.CheckVersion(tagOf(protocol.TypeHeartbeat), protocol.Version{Major: 1, Minor: 2}); err != nil {
		t.Error(err)
	}
	if err := env.CheckVersion(tagOf(protocol.TypeHello), protocol.Version{Major: 9}); err != nil {
		t.Error(err)
	}
	var v *protocol.Violation
	err := env.CheckVersion(tagOf(protocol.TypeHeartbeat), protocol.Version{Major: 1, Minor: 1})
	if !errors.As(err, &v) || v.Fault != protocol.FaultVersion || v.Re != env.ID() {
		t.Errorf("%v", err)
	}
}
