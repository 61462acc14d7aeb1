package protocol_test

import (
	"errors"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// tagOf returns the tag of a type in this build.
func tagOf(id protocol.TypeID) protocol.Tag { return protocol.Tag{Type: id, Schema: 1} }

// active is the gate of an agent at work.
func active() protocol.Gate {
	return protocol.Gate{ALPN: protocol.ALPNAgent, Role: protocol.RoleAgent, State: forge.ConnActive, Features: protocol.Features()}
}

// fault returns what the gate has against a frame, or 0.
func fault(t *testing.T, err error) protocol.Fault {
	t.Helper()
	if err == nil {
		return 0
	}
	var v *protocol.Violation
	if !errors.As(err, &v) {
		t.Fatalf("%v is no violation", err)
	}
	return v.Fault
}

// arrives lists the types that may arrive at one side in a state, on any stream.
func arrives(g protocol.Gate, to protocol.Direction) []protocol.TypeID {
	var ids []protocol.TypeID
	for _, info := range protocol.Registry() {
		for _, kind := range protocol.StreamKinds() {
			if g.Frame(to, kind.Kind, tagOf(info.ID)) == nil {
				ids = append(ids, info.ID)
				break
			}
		}
	}
	return ids
}

func TestRegistrationComesBeforeEverythingElse(t *testing.T) {
	for state, want := range map[forge.ConnectionState][]protocol.TypeID{
		forge.ConnConnecting:     nil,
		forge.ConnAuthenticating: nil,
		forge.ConnNegotiating:    {protocol.TypeHello, protocol.TypeError},
		forge.ConnRegistering:    {protocol.TypeRegister, protocol.TypeError},
		forge.ConnResyncing:      {protocol.TypeResync, protocol.TypeError},
		forge.ConnClosed:         nil,
	} {
		g := active()
		g.State = state
		got := arrives(g, protocol.ToDaemon)
		if len(got) != len(want) {
			t.Errorf("%v: %v, want %v", state, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%v: %v, want %v", state, got, want)
			}
		}
		for _, id := range []protocol.TypeID{protocol.TypeLeaseAccept, protocol.TypeCompletion, protocol.TypeHeartbeat} {
			if f := fault(t, g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(id))); f != protocol.FaultState {
				t.Errorf("%v in %v: %v, want a fault of state", id, state, f)
			}
		}
	}
}

func TestBeforeItsHelloAPeerHasNoRole(t *testing.T) {
	g := protocol.Gate{ALPN: protocol.ALPNAgent, State: forge.ConnNegotiating}
	if err := g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(protocol.TypeHello)); err != nil {
		t.Error(err)
	}
	if f := fault(t, g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(protocol.TypeRegister))); f != protocol.FaultRole {
		t.Errorf("Register: %v", f)
	}
}

func TestADrainingOrClosingConnectionBeginsNothing(t *testing.T) {
	g := active()
	g.State = forge.ConnDraining
	if f := fault(t, g.Frame(protocol.ToPeer, protocol.StreamControl, tagOf(protocol.TypeLeaseOffer))); f != protocol.FaultState {
		t.Errorf("an offer while draining: %v", f)
	}
	for _, id := range []protocol.TypeID{protocol.TypeCompletion, protocol.TypeHeartbeat, protocol.TypePhase, protocol.TypeLogFinal} {
		if err := g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(id)); err != nil {
			t.Errorf("while draining: %v", err)
		}
	}
	g.State = forge.ConnClosing
	for _, id := range []protocol.TypeID{
		protocol.TypeLeaseAccept, protocol.TypeCompletion, protocol.TypeHeartbeat, protocol.TypeSecretRequest, protocol.TypeEnroll,
	} {
		for _, info := range protocol.StreamKinds() {
			if err := g.Frame(protocol.ToDaemon, info.Kind, tagOf(id)); err == nil {
				t.Errorf("%v while closing, on %v", id, info.Kind)
			}
		}
	}
	if err := g.Frame(protocol.ToPeer, protocol.StreamControl, tagOf(protocol.TypeCompletionAck)); err != nil {
		t.Errorf("an answer while closing: %v", err)
	}
}

func TestASigningWorkerMayNotSpeakOfExecution(t *testing.T) {
	onlySharedFamilies(t, protocol.ALPNSigning, protocol.RoleSigningWorker, 0x0901, 0x0a01)
}

func TestADeviceAgentMaySpeakOfDevicesOnly(t *testing.T) {
	onlySharedFamilies(t, protocol.ALPNDevice, protocol.RoleDeviceAgent, 0x0a01, 0x0901)
}

// onlySharedFamilies: what every role says, and its own family, which this build has no messages of.
func onlySharedFamilies(t *testing.T, alpn protocol.ALPN, role protocol.Role, own, foreign protocol.TypeID) {
	t.Helper()
	g := protocol.Gate{ALPN: alpn, Role: role, State: forge.ConnActive, Features: protocol.Features()}
	for _, info := range protocol.Registry() {
		shared := info.Family == protocol.FamilySession || info.Family == protocol.FamilyRegistration || info.Family == protocol.FamilyEnroll
		for _, to := range []protocol.Direction{protocol.ToDaemon, protocol.ToPeer} {
			f := fault(t, g.Frame(to, protocol.StreamControl, tagOf(info.ID)))
			if !shared && f != protocol.FaultRole {
				t.Errorf("%s %v: %v, want a fault of role", info.Name, to, f)
			}
		}
	}
	if f := fault(t, g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(foreign))); f != protocol.FaultRole {
		t.Errorf("another role's reserved family: %v", f)
	}
	if err := g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(own)); err != nil {
		t.Errorf("its own family is not registered, which decoding finds: %v", err)
	}
	for _, kind := range []protocol.StreamKind{protocol.StreamLog, protocol.StreamCASDownload, protocol.StreamCASUpload, protocol.StreamSecret} {
		if f := fault(t, g.Stream(kind)); f != protocol.FaultRole {
			t.Errorf("a %v stream: %v, want a fault of role", kind, f)
		}
	}
}

func TestAnAgentMayNotTouchReservedFamilies(t *testing.T) {
	for _, id := range []protocol.TypeID{0x0900, 0x09ff, 0x0a00, 0x0aff} {
		err := active().Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(id))
		var v *protocol.Violation
		if !errors.As(err, &v) || v.Severity() != protocol.SeveritySecurity || v.Reason() != forge.CloseRoleViolation {
			t.Errorf("%v: %v", id, err)
		}
	}
}

func TestNobodySpeaksForTheOtherSide(t *testing.T) {
	for _, info := range protocol.Registry() {
		for _, to := range []protocol.Direction{protocol.ToDaemon, protocol.ToPeer} {
			if info.To&to != 0 {
				continue
			}
			for _, alpn := range []protocol.ALPN{protocol.ALPNAgent, protocol.ALPNEnroll} {
				g := active()
				g.ALPN = alpn
				for _, kind := range protocol.StreamKinds() {
					if f := fault(t, g.Frame(to, kind.Kind, tagOf(info.ID))); f != protocol.FaultRole {
						t.Errorf("%s %v on %v: %v, want a fault of role", info.Name, to, kind.Kind, f)
					}
				}
			}
		}
	}
}

func TestEnrolmentHasARoadOfItsOwn(t *testing.T) {
	g := active()
	g.State = forge.ConnRegistering
	if f := fault(t, g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(protocol.TypeEnroll))); f != protocol.FaultRole {
		t.Errorf("Enroll among agents: %v", f)
	}
	g.ALPN = protocol.ALPNEnroll
	for _, info := range protocol.Registry() {
		for _, state := range []forge.ConnectionState{forge.ConnRegistering, forge.ConnActive} {
			g.State = state
			allowed := g.Frame(protocol.ToDaemon, protocol.StreamControl, tagOf(info.ID)) == nil
			want := state == forge.ConnRegistering && info.ID == protocol.TypeEnroll || info.ID == protocol.TypeError
			if allowed != want {
				t.Errorf("%s in %v while enrolling: %v, want %v", info.Name, state, allowed, want)
			}
		}
	}
	for _, alpn := range []protocol.ALPN{protocol.ALPNAgent, protocol.ALPNEnroll, protocol.ALPNSigning, protocol.ALPNDevice, "h3"} {
		for role := protocol.Role(0); role < 6; role++ {
			want := alpn == protocol.ALPNEnroll && role >= 1 && role <= 4 ||
				alpn == protocol.ALPNAgent && (role == protocol.RoleAgent || role == protocol.RoleInternalWorker) ||
				alpn == protocol.ALPNSigning && role == protocol.RoleSigningWorker ||
				alpn == protocol.ALPNDevice && role == protocol.RoleDeviceAgent
			if alpn.Admits(role) != want {
				t.Errorf("%s admits %v: %v", alpn, role, !want)
			}
		}
	}
}

func TestLogsObjectsAndSecretsHaveStreamsOfTheirOwn(t *testing.T) {
	own := map[protocol.Family][]protocol.StreamKind{
		protocol.FamilySecret: {protocol.StreamSecret},
		protocol.FamilyCAS:    {protocol.StreamCASDownload, protocol.StreamCASUpload},
	}
	for _, info := range protocol.Registry() {
		kinds, elsewhere := own[info.Family]
		if info.ID == protocol.TypeLogFrame {
			kinds, elsewhere = []protocol.StreamKind{protocol.StreamLog}, true
		}
		if !elsewhere {
			if !info.Streams.Has(protocol.StreamControl) {
				t.Errorf("%s may not travel on the control stream", info.Name)
			}
			continue
		}
		to := info.To & protocol.ToDaemon
		if to == 0 {
			to = protocol.ToPeer
		}
		if f := fault(t, active().Frame(to, protocol.StreamControl, tagOf(info.ID))); f != protocol.FaultState {
			t.Errorf("%s on the control stream: %v, want a fault of state", info.Name, f)
		}
		if info.ID == protocol.TypeNeedObjects || info.ID == protocol.TypeMissingObjects {
			kinds = kinds[1:]
		}
		for _, kind := range kinds {
			if err := active().Frame(to, kind, tagOf(info.ID)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAFeatureIsUsedOnlyWhenBothHaveIt(t *testing.T) {
	g := active()
	g.Features = nil
	for _, info := range protocol.Registry() {
		to := info.To & protocol.ToDaemon
		if to == 0 {
			to = protocol.ToPeer
		}
		kind := protocol.StreamControl
		if info.Streams.Has(protocol.StreamCASDownload) {
			kind = protocol.StreamCASDownload
		}
		if info.Feature == 0 {
			continue
		}
		if f := fault(t, g.Frame(to, kind, tagOf(info.ID))); f != protocol.FaultState {
			t.Errorf("%s without %v: %v, want a fault of state", info.Name, info.Feature, f)
		}
		if err := active().Frame(to, kind, tagOf(info.ID)); err != nil {
			t.Error(err)
		}
	}
}

func TestStreamsAreOpenedInTheirTimeOnly(t *testing.T) {
	for state := forge.ConnConnecting; state <= forge.ConnClosed; state++ {
		g := active()
		g.State = state
		for _, info := range protocol.StreamKinds() {
			working := state == forge.ConnActive || state == forge.ConnDraining
			want := info.Kind == protocol.StreamControl && state == forge.ConnNegotiating ||
				info.Kind != protocol.StreamControl && info.Schema != 0 && working
			if got := g.Stream(info.Kind) == nil; got != want {
				t.Errorf("%v in %v: %v, want %v", info.Kind, state, got, want)
			}
		}
	}
	for _, kind := range []protocol.StreamKind{0, 9, 127, 128, 255} {
		if f := fault(t, active().Stream(kind)); f != protocol.FaultHeader {
			t.Errorf("kind %d: %v", kind, f)
		}
	}
}

// TestThereIsNoRemoteShell: a daemon can make an agent execute what a leased specification says, and nothing else: no
// message to an agent but the offer has room for it.
func TestThereIsNoRemoteShell(t *testing.T) {
	g := active()
	want := map[protocol.TypeID]bool{
		protocol.TypeDrain: true, protocol.TypeResume: true, protocol.TypeRefreshCapabilities: true, protocol.TypeProbeRequest: true,
	}
	commands := 0
	for _, id := range arrives(g, protocol.ToPeer) {
		info, _ := protocol.Lookup(id)
		if info.Family == protocol.FamilyAdmin || id == protocol.TypeProbeRequest {
			commands++
			if !want[id] {
				t.Errorf("%v is a command that the documents do not have", id)
			}
		}
	}
	if commands != len(want) {
		t.Errorf("%d commands, want %d", commands, len(want))
	}
}
