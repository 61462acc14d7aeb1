package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// OutcomeV1 says how the transfer of an object ended. An unknown one refuses the message.
type OutcomeV1 uint8

// The outcomes. What may not be had and what is not there look the same from outside.
const (
	OutcomeStored         OutcomeV1 = 1 // verified and durable
	OutcomePresent        OutcomeV1 = 2 // was there already
	OutcomeNotFound       OutcomeV1 = 3 // or not for this attempt
	OutcomeDigestMismatch OutcomeV1 = 4
	OutcomeBadRange       OutcomeV1 = 5
	OutcomeQuota          OutcomeV1 = 6
	OutcomeStorageFull    OutcomeV1 = 7
	OutcomeStaleLease     OutcomeV1 = 8
)

var outcomeNames = protocol.Enum[string]{
	1: "Stored", 2: "Present", 3: "NotFound", 4: "DigestMismatch", 5: "BadRange", 6: "Quota", 7: "StorageFull", 8: "StaleLease",
}

func (o OutcomeV1) String() string { return outcomeNames.Name(uint8(o)) }

// Valid reports whether o is one of the outcomes.
func (o OutcomeV1) Valid() bool { return outcomeNames.Known(uint8(o)) }

// CasResultV1 ends the transfer of one object. It comes from the side that stores, or cannot serve.
type CasResultV1 struct {
	Object  protocol.RefV1
	Outcome OutcomeV1
}

// Tag implements protocol.Message.
func (*CasResultV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeCasResult, Schema: 1} }

// Validate implements protocol.Message.
func (w *CasResultV1) Validate() error {
	var c protocol.Check
	c.In("object", w.Object.Validate())
	c.That(w.Outcome.Valid(), "outcome", "is not known")
	return c.Err()
}
