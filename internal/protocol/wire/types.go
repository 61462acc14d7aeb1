package wire

import (
	"cmp"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// types makes an empty wire struct of each tag of the registry.
var types = []func() protocol.Message{
	empty[protocol.HelloV1],
	empty[protocol.HelloAckV1],
	empty[agentv1.RegisterV1],
	empty[agentv1.RegistrationAcceptedV1],
	empty[agentv1.RegistrationRejectedV1],
	empty[agentv1.EnrollV1],
	empty[agentv1.EnrollAcceptedV1],
	empty[agentv1.RenewCertificateV1],
	empty[agentv1.CertificateIssuedV1],
	empty[agentv1.CapabilityUpdateV1],
	empty[agentv1.ResyncV1],
	empty[agentv1.ResyncReplyV1],
	empty[agentv1.RecoverAttemptsV1],
	empty[agentv1.RecoveryDecisionsV1],
	empty[agentv1.LeaseOfferV1],
	empty[agentv1.LeaseAcceptV1],
	empty[agentv1.LeaseRejectV1],
	empty[agentv1.LeaseAcceptAckV1],
	empty[agentv1.CancelV1],
	empty[agentv1.CancelAckV1],
	empty[agentv1.HeartbeatV1],
	empty[agentv1.HeartbeatAckV1],
	empty[agentv1.HealthReportV1],
	empty[agentv1.ProbeRequestV1],
	empty[agentv1.PhaseChangeV1],
	empty[agentv1.PhaseAckV1],
	empty[agentv1.CompletionV1],
	empty[agentv1.CompletionAckV1],
	empty[logv1.LogFrameV1],
	empty[logv1.LogAckV1],
	empty[logv1.LogResumeV1],
	empty[logv1.LogFinalV1],
	empty[logv1.LogFinalAckV1],
	empty[casv1.NeedObjectsV1],
	empty[casv1.MissingObjectsV1],
	empty[casv1.CasHeaderV1],
	empty[casv1.CasRangeStateV1],
	empty[casv1.CasResultV1],
	empty[agentv1.SecretRequestV1],
	empty[agentv1.SecretMaterialV1],
	empty[protocol.GoAwayV1],
	empty[protocol.ErrorV1],
	empty[agentv1.DrainV1],
	empty[agentv1.ResumeV1],
	empty[agentv1.RefreshCapabilitiesV1],
}

// empty returns a pointer to an empty wire struct.
func empty[T any, P interface {
	*T
	protocol.Message
}]() protocol.Message {
	return P(new(T))
}

type entry struct {
	tag  protocol.Tag
	make func() protocol.Message
}

func compareTags(a, b protocol.Tag) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Schema, b.Schema))
}

// index has the entries ascending by tag.
var index = sync.OnceValue(func() []entry {
	entries := make([]entry, 0, len(types))
	for _, make := range types {
		entries = append(entries, entry{make().Tag(), make})
	}
	slices.SortFunc(entries, func(a, b entry) int { return compareTags(a.tag, b.tag) })
	return entries
})

// New returns an empty wire struct for a tag, or false for one that this build does not know.
func New(tag protocol.Tag) (protocol.Message, bool) {
	entries := index()
	i, found := slices.BinarySearchFunc(entries, tag, func(e entry, tag protocol.Tag) int { return compareTags(e.tag, tag) })
	if !found {
		return nil, false
	}
	return entries[i].make(), true
}

// Tags lists every tag, ascending.
func Tags() []protocol.Tag {
	var tags []protocol.Tag
	for _, e := range index() {
		tags = append(tags, e.tag)
	}
	return tags
}

// NewStreamHead returns an empty wire struct for the header of a kind of streams, or false for a kind that this build
// does not open.
func NewStreamHead(kind protocol.StreamKind) (protocol.StreamHead, bool) {
	switch kind {
	case protocol.StreamControl:
		return new(protocol.ControlHeaderV1), true
	case protocol.StreamLog:
		return new(logv1.StreamHeaderV1), true
	case protocol.StreamCASDownload, protocol.StreamCASUpload:
		return new(casv1.StreamHeaderV1), true
	case protocol.StreamSecret:
		return new(agentv1.SecretHeaderV1), true
	}
	return nil, false
}
