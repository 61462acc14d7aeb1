package protocol

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// TypeID says what a frame holds (09§159). Ids are written out and never used twice.
type TypeID uint16

// String writes the id as the documents do: 0201 and, if it is registered, the name.
func (id TypeID) String() string {
	if info, ok := Lookup(id); ok {
		return fmt.Sprintf("%04x %s", uint16(id), info.Name)
	}
	return fmt.Sprintf("%04x", uint16(id))
}

// The ids. 0303 and 0304 were meant for a renewal of its own, which rides on the heartbeat; 09xx and 0Axx are reserved
// for signing and devices.
const (
	TypeHello                TypeID = 0x0101
	TypeHelloAck             TypeID = 0x0102
	TypeRegister             TypeID = 0x0110
	TypeRegistrationAccepted TypeID = 0x0111
	TypeRegistrationRejected TypeID = 0x0112
	TypeEnroll               TypeID = 0x0113
	TypeEnrollAccepted       TypeID = 0x0114
	TypeRenewCertificate     TypeID = 0x0115
	TypeCertificateIssued    TypeID = 0x0116
	TypeCapabilityUpdate     TypeID = 0x0120
	TypeResync               TypeID = 0x0130
	TypeResyncReply          TypeID = 0x0131
	TypeRecoverAttempts      TypeID = 0x0132
	TypeRecoveryDecisions    TypeID = 0x0133
	TypeLeaseOffer           TypeID = 0x0201
	TypeLeaseAccept          TypeID = 0x0202
	TypeLeaseReject          TypeID = 0x0203
	TypeLeaseAcceptAck       TypeID = 0x0204
	TypeCancel               TypeID = 0x0210
	TypeCancelAck            TypeID = 0x0211
	TypeHeartbeat            TypeID = 0x0301
	TypeHeartbeatAck         TypeID = 0x0302
	TypeHealthReport         TypeID = 0x0310
	TypeProbeRequest         TypeID = 0x0311
	TypePhase                TypeID = 0x0401
	TypePhaseAck             TypeID = 0x0402
	TypeCompletion           TypeID = 0x0410
	TypeCompletionAck        TypeID = 0x0411
	TypeLogFrame             TypeID = 0x0501
	TypeLogAck               TypeID = 0x0502
	TypeLogResume            TypeID = 0x0503
	TypeLogFinal             TypeID = 0x0504
	TypeLogFinalAck          TypeID = 0x0505
	TypeNeedObjects          TypeID = 0x0601
	TypeMissingObjects       TypeID = 0x0602
	TypeCasHeader            TypeID = 0x0603
	TypeCasRangeState        TypeID = 0x0604
	TypeCasResult            TypeID = 0x0605
	TypeSecretRequest        TypeID = 0x0701
	TypeSecretMaterial       TypeID = 0x0702
	TypeGoAway               TypeID = 0x0801
	TypeError                TypeID = 0x0802
	TypeDrain                TypeID = 0x0820
	TypeResume               TypeID = 0x0821
	TypeRefreshCapabilities  TypeID = 0x0822
)

// Direction says who gets a message.
type Direction uint8

// The directions.
const (
	ToDaemon   Direction = 1
	ToPeer     Direction = 2
	ToEveryone Direction = ToDaemon | ToPeer
)

var directionNames = Enum[string]{1: "to daemon", 2: "to peer", 3: "both"}

func (d Direction) String() string { return directionNames.Name(uint8(d)) }

// Stage is a set of connection states.
type Stage uint16

// in makes a stage.
func in(states ...forge.ConnectionState) Stage {
	var s Stage
	for _, state := range states {
		s |= 1 << state
	}
	return s
}

// Has reports whether a state is in the set.
func (s Stage) Has(state forge.ConnectionState) bool { return s&(1<<state) != 0 }

// Stages of a dialogue (09§186–190).
var (
	whileNegotiating = in(forge.ConnNegotiating)
	whileRegistering = in(forge.ConnRegistering)
	whileResyncing   = in(forge.ConnResyncing)
	whileActive      = in(forge.ConnActive)                                        // begins new work
	whileWorking     = in(forge.ConnActive, forge.ConnDraining)                    // goes on with what there is
	whileAnswering   = in(forge.ConnActive, forge.ConnDraining, forge.ConnClosing) // only tells
	onceNegotiated   = whileRegistering | whileResyncing | whileAnswering
	always           = whileNegotiating | onceNegotiated
)

// Streams is a set of stream kinds.
type Streams uint16

// On makes a set of stream kinds.
func On(kinds ...StreamKind) Streams {
	var s Streams
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether a kind is in the set.
func (s Streams) Has(k StreamKind) bool { return k < 16 && s&(1<<k) != 0 }

// Info is what the registry knows of a type.
type Info struct {
	ID      TypeID
	Name    string
	Schema  uint8 // of the payload's wire struct
	Family  Family
	To      Direction
	Streams Streams
	When    Stage  // states of the connection in which it may arrive
	Max     uint32 // bytes of a body, envelope included
	Feature Feature
}

var (
	onControl = On(StreamControl)
	onLog     = On(StreamLog)
	onCAS     = On(StreamCASDownload, StreamCASUpload)
	onUpload  = On(StreamCASUpload)
	onSecret  = On(StreamSecret)
)

// registry is the one table of messages, ascending by id. The same table stands in protocols/internal/agent-daemon.md.
var registry = []Info{
	{TypeHello, "Hello", 1, FamilySession, ToDaemon, onControl, whileNegotiating, 2 * kibi, 0},
	{TypeHelloAck, "HelloAck", 1, FamilySession, ToPeer, onControl, whileNegotiating, 2 * kibi, 0},
	{TypeRegister, "Register", 1, FamilyRegistration, ToDaemon, onControl, whileRegistering, 256 * kibi, 0},
	{TypeRegistrationAccepted, "RegistrationAccepted", 1, FamilyRegistration, ToPeer, onControl, whileRegistering, 8 * kibi, 0},
	{TypeRegistrationRejected, "RegistrationRejected", 1, FamilyRegistration, ToPeer, onControl, whileRegistering, 8 * kibi, 0},
	{TypeEnroll, "Enroll", 1, FamilyEnroll, ToDaemon, onControl, whileRegistering, 16 * kibi, 0},
	{TypeEnrollAccepted, "EnrollAccepted", 1, FamilyEnroll, ToPeer, onControl, whileRegistering, 16 * kibi, 0},
	{TypeRenewCertificate, "RenewCertificate", 1, FamilyRegistration, ToDaemon, onControl, whileWorking, 16 * kibi, 0},
	{TypeCertificateIssued, "CertificateIssued", 1, FamilyRegistration, ToPeer, onControl, whileWorking, 16 * kibi, 0},
	{TypeCapabilityUpdate, "CapabilityUpdate", 1, FamilyAgent, ToDaemon, onControl, whileWorking, 256 * kibi, 0},
	{TypeResync, "Resync", 1, FamilyAgent, ToDaemon, onControl, whileResyncing, 128 * kibi, 0},
	{TypeResyncReply, "ResyncReply", 1, FamilyAgent, ToPeer, onControl, whileResyncing, 128 * kibi, 0},
	{TypeRecoverAttempts, "RecoverAttempts", 1, FamilyAgent, ToDaemon, onControl, whileWorking, 128 * kibi, 0},
	{TypeRecoveryDecisions, "RecoveryDecisions", 1, FamilyAgent, ToPeer, onControl, whileWorking, 128 * kibi, 0},
	{TypeLeaseOffer, "LeaseOffer", 1, FamilyAgent, ToPeer, onControl, whileActive, 64 * kibi, 0},
	{TypeLeaseAccept, "LeaseAccept", 1, FamilyAgent, ToDaemon, onControl, whileWorking, kibi, 0},
	{TypeLeaseReject, "LeaseReject", 1, FamilyAgent, ToDaemon, onControl, whileWorking, kibi, 0},
	{TypeLeaseAcceptAck, "LeaseAcceptAck", 1, FamilyAgent, ToPeer, onControl, whileWorking, kibi, 0},
	{TypeCancel, "Cancel", 1, FamilyAgent, ToPeer, onControl, whileAnswering, kibi, 0},
	{TypeCancelAck, "CancelAck", 1, FamilyAgent, ToDaemon, onControl, whileAnswering, kibi, 0},
	{TypeHeartbeat, "Heartbeat", 1, FamilyAgent, ToDaemon, onControl, whileWorking, 32 * kibi, 0},
	{TypeHeartbeatAck, "HeartbeatAck", 1, FamilyAgent, ToPeer, onControl, whileAnswering, 16 * kibi, 0},
	{TypeHealthReport, "HealthReport", 1, FamilyHealth, ToDaemon, onControl, whileWorking, 16 * kibi, 0},
	{TypeProbeRequest, "ProbeRequest", 1, FamilyHealth, ToPeer, onControl, whileWorking, 16 * kibi, FeatureProbe},
	{TypePhase, "Phase", 1, FamilyAgent, ToDaemon, onControl, whileWorking, kibi, 0},
	{TypePhaseAck, "PhaseAck", 1, FamilyAgent, ToPeer, onControl, whileAnswering, kibi, 0},
	{TypeCompletion, "Completion", 1, FamilyAgent, ToDaemon, onControl, whileWorking, 64 * kibi, 0},
	{TypeCompletionAck, "CompletionAck", 1, FamilyAgent, ToPeer, onControl, whileAnswering, kibi, 0},
	{TypeLogFrame, "LogFrame", 1, FamilyLog, ToDaemon, onLog, whileAnswering, 66 * kibi, 0},
	{TypeLogAck, "LogAck", 1, FamilyLog, ToPeer, onControl, whileAnswering, 128, 0},
	{TypeLogResume, "LogResume", 1, FamilyLog, ToPeer, onControl, whileWorking, 512, FeatureLogResume},
	{TypeLogFinal, "LogFinal", 1, FamilyLog, ToDaemon, onControl, whileWorking, 512, 0},
	{TypeLogFinalAck, "LogFinalAck", 1, FamilyLog, ToPeer, onControl, whileAnswering, 512, 0},
	{TypeNeedObjects, "NeedObjects", 1, FamilyCAS, ToDaemon, onUpload, whileAnswering, 256 * kibi, 0},
	{TypeMissingObjects, "MissingObjects", 1, FamilyCAS, ToPeer, onUpload, whileAnswering, 256 * kibi, 0},
	{TypeCasHeader, "CasHeader", 1, FamilyCAS, ToEveryone, onCAS, whileAnswering, 16 * kibi, 0},
	{TypeCasRangeState, "CasRangeState", 1, FamilyCAS, ToEveryone, onCAS, whileAnswering, 16 * kibi, FeatureCASRange},
	{TypeCasResult, "CasResult", 1, FamilyCAS, ToEveryone, onCAS, whileAnswering, 16 * kibi, 0},
	{TypeSecretRequest, "SecretRequest", 1, FamilySecret, ToDaemon, onSecret, whileWorking, kibi, 0},
	{TypeSecretMaterial, "SecretMaterial", 1, FamilySecret, ToPeer, onSecret, whileWorking, 66 * kibi, 0},
	{TypeGoAway, "GoAway", 1, FamilySession, ToPeer, onControl, onceNegotiated, 4 * kibi, 0},
	{TypeError, "Error", 1, FamilySession, ToEveryone, onControl | onSecret | onCAS, always, 2 * kibi, 0},
	{TypeDrain, "Drain", 1, FamilyAdmin, ToPeer, onControl, whileWorking, 512, 0},
	{TypeResume, "Resume", 1, FamilyAdmin, ToPeer, onControl, whileWorking, 512, 0},
	{TypeRefreshCapabilities, "RefreshCapabilities", 1, FamilyAdmin, ToPeer, onControl, whileWorking, 512, 0},
}

// Registry returns the table, ascending by id. The caller may change what it gets.
func Registry() []Info { return slices.Clone(registry) }

// Lookup finds a type.
func Lookup(id TypeID) (Info, bool) {
	i, found := slices.BinarySearchFunc(registry, id, func(info Info, id TypeID) int { return cmp.Compare(info.ID, id) })
	if !found {
		return Info{}, false
	}
	return registry[i], true
}

// LookupTag finds a type with one of its schemas.
func LookupTag(tag Tag) (Info, bool) {
	info, ok := Lookup(tag.Type)
	return info, ok && info.Schema == tag.Schema
}
