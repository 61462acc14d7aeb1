package protocol

import (
	"strconv"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// CloseCode is the application error code with which a connection is closed (09§103). Codes are only ever added.
type CloseCode uint32

// closeCodes maps reasons to codes. forge says the name and what an agent does after each. Nothing is sent for a
// connection that is merely gone, so CloseLost has no code.
var closeCodes = [...]struct {
	reason forge.CloseReason
	code   CloseCode
}{
	{forge.CloseNormal, 0x000},
	{forge.CloseShutdown, 0x001},
	{forge.CloseGoAway, 0x002},
	{forge.CloseProtocol, 0x100},
	{forge.CloseFrameTooLarge, 0x101},
	{forge.CloseMalformed, 0x102},
	{forge.CloseBadState, 0x103},
	{forge.CloseUnsupported, 0x104},
	{forge.CloseRoleViolation, 0x105},
	{forge.CloseRate, 0x106},
	{forge.CloseRegisterTimeout, 0x107},
	{forge.CloseAuthFailed, 0x200},
	{forge.CloseCertExpired, 0x201},
	{forge.CloseRevoked, 0x202},
	{forge.CloseRunnerDisabled, 0x203},
	{forge.CloseCloneSuspected, 0x204},
	{forge.CloseVersionMismatch, 0x300},
	{forge.CloseTooOld, 0x301},
	{forge.CloseTooNew, 0x302},
	{forge.CloseFenced, 0x400},
	{forge.CloseSessionSuperseded, 0x401},
	{forge.CloseOverloaded, 0x500},
	{forge.CloseNotReady, 0x501},
	{forge.CloseInternal, 0x5ff},
}

// CloseCodeOf returns the code of a reason. A reason without one is said as INTERNAL: it is a bug to send it.
func CloseCodeOf(reason forge.CloseReason) CloseCode {
	for _, c := range closeCodes {
		if c.reason == reason {
			return c.code
		}
	}
	return 0x5ff
}

// Reason returns the reason of a code. A code that a newer peer added reads as the mildest of its hundred, so that an
// older agent does about the right thing.
func (c CloseCode) Reason() forge.CloseReason {
	for _, known := range closeCodes {
		if known.code == c {
			return known.reason
		}
	}
	switch c >> 8 {
	case 1:
		return forge.CloseProtocol
	case 2:
		return forge.CloseAuthFailed
	case 3:
		return forge.CloseVersionMismatch
	case 4:
		return forge.CloseFenced
	default:
		return forge.CloseInternal
	}
}

// Known reports whether the code stands in the table.
func (c CloseCode) Known() bool { return CloseCodeOf(c.Reason()) == c }

func (c CloseCode) String() string {
	text := "0x" + strconv.FormatUint(uint64(c), 16)
	if c.Known() {
		text += " " + c.Reason().String()
	}
	return text
}

// ResetCode is the application error code with which a stream is reset. Codes are only ever added.
type ResetCode uint32

// The codes.
const (
	ResetCancelled      ResetCode = 0x1000
	ResetNotFound       ResetCode = 0x1001
	ResetNotAuthorized  ResetCode = 0x1002 // for our log; sent as ResetNotFound
	ResetDigestMismatch ResetCode = 0x1003
	ResetBadRange       ResetCode = 0x1004
	ResetQuota          ResetCode = 0x1005
	ResetStaleLease     ResetCode = 0x1006
	ResetMalformed      ResetCode = 0x1007
	ResetLimit          ResetCode = 0x1008
	ResetStorageFull    ResetCode = 0x1009
	ResetTimeout        ResetCode = 0x100a
	ResetResumeLater    ResetCode = 0x100b
)

var resetFacts = [...]struct {
	name  string
	retry ResetRetry
}{
	{"CANCELLED", ResetNever},
	{"NOT_FOUND", ResetNever},
	{"NOT_AUTHORIZED", ResetNever},
	{"DIGEST_MISMATCH", ResetAgain},
	{"BAD_RANGE", ResetAgain},
	{"QUOTA", ResetNever},
	{"STALE_LEASE", ResetNever},
	{"MALFORMED", ResetNever},
	{"LIMIT", ResetNever},
	{"STORAGE_FULL", ResetLater},
	{"TIMEOUT", ResetAgain},
	{"RESUME_LATER", ResetLater},
}

// ResetRetry says what to do after a reset.
type ResetRetry uint8

// What may be done.
const (
	ResetNever ResetRetry = 1 // the same request fails again
	ResetAgain ResetRetry = 2 // from the start, with backoff
	ResetLater ResetRetry = 3 // when the peer has room again, with backoff
)

var resetRetryNames = Enum[string]{1: "never", 2: "again", 3: "later"}

func (r ResetRetry) String() string { return resetRetryNames.Name(uint8(r)) }

// ResetCodes lists every code.
func ResetCodes() []ResetCode {
	codes := make([]ResetCode, len(resetFacts))
	for i := range codes {
		codes[i] = ResetCancelled + ResetCode(i)
	}
	return codes
}

// Known reports whether the code stands in the table.
func (c ResetCode) Known() bool { return c-ResetCancelled < ResetCode(len(resetFacts)) }

// Retry says what to do after a reset with c; one that this build does not know may be tried again.
func (c ResetCode) Retry() ResetRetry {
	if !c.Known() {
		return ResetAgain
	}
	return resetFacts[c-ResetCancelled].retry
}

// Outward is the code that is sent: whoever may not have something learns no more than that it is not there.
func (c ResetCode) Outward() ResetCode {
	if c == ResetNotAuthorized {
		return ResetNotFound
	}
	return c
}

func (c ResetCode) String() string {
	if !c.Known() {
		return "0x" + strconv.FormatUint(uint64(c), 16)
	}
	return resetFacts[c-ResetCancelled].name
}
