package forge

// CloseReason says why a connection ends (09§102). The protocol maps each to its wire code.
type CloseReason uint8

// The reasons.
const (
	CloseNormal            CloseReason = 1
	CloseShutdown          CloseReason = 2
	CloseGoAway            CloseReason = 3
	CloseProtocol          CloseReason = 4
	CloseFrameTooLarge     CloseReason = 5
	CloseMalformed         CloseReason = 6
	CloseBadState          CloseReason = 7
	CloseUnsupported       CloseReason = 8
	CloseRoleViolation     CloseReason = 9
	CloseRate              CloseReason = 10
	CloseRegisterTimeout   CloseReason = 11
	CloseAuthFailed        CloseReason = 12
	CloseCertExpired       CloseReason = 13
	CloseRevoked           CloseReason = 14
	CloseRunnerDisabled    CloseReason = 15
	CloseCloneSuspected    CloseReason = 16
	CloseVersionMismatch   CloseReason = 17
	CloseTooOld            CloseReason = 18
	CloseTooNew            CloseReason = 19
	CloseFenced            CloseReason = 20 // a newer connection of the same session took over
	CloseSessionSuperseded CloseReason = 21 // a newer process took over: this one stops
	CloseOverloaded        CloseReason = 22
	CloseNotReady          CloseReason = 23
	CloseInternal          CloseReason = 24
	CloseLost              CloseReason = 25 // nothing was said: the connection just ended
)

// RetryClass says what an agent does after a close.
type RetryClass uint8

// The retry classes.
const (
	RetryStop       RetryClass = 1 // never again; the process ends
	RetryOperator   RetryClass = 2 // somebody has to act: retry slowly
	RetryBackoff    RetryClass = 3
	RetryElsewhere  RetryClass = 4 // another endpoint, now
	RetryDelayed    RetryClass = 5 // after the delay that was given
	RetryRecover    RetryClass = 6 // prove the key for a new certificate
	RetryConnection RetryClass = 7 // never on that connection; backoff if it was the newest
)

var closeFacts = [...]struct {
	name  string
	retry RetryClass
}{
	CloseNormal:            {"NORMAL", RetryStop},
	CloseShutdown:          {"SHUTDOWN", RetryElsewhere},
	CloseGoAway:            {"GOAWAY", RetryDelayed},
	CloseProtocol:          {"PROTOCOL", RetryBackoff},
	CloseFrameTooLarge:     {"FRAME_TOO_LARGE", RetryBackoff},
	CloseMalformed:         {"MALFORMED", RetryBackoff},
	CloseBadState:          {"BAD_STATE", RetryBackoff},
	CloseUnsupported:       {"UNSUPPORTED", RetryOperator},
	CloseRoleViolation:     {"ROLE_VIOLATION", RetryOperator},
	CloseRate:              {"RATE", RetryBackoff},
	CloseRegisterTimeout:   {"REGISTER_TIMEOUT", RetryBackoff},
	CloseAuthFailed:        {"AUTH_FAILED", RetryOperator},
	CloseCertExpired:       {"CERT_EXPIRED", RetryRecover},
	CloseRevoked:           {"REVOKED", RetryStop},
	CloseRunnerDisabled:    {"RUNNER_DISABLED", RetryOperator},
	CloseCloneSuspected:    {"CLONE_SUSPECTED", RetryOperator},
	CloseVersionMismatch:   {"VERSION_MISMATCH", RetryOperator},
	CloseTooOld:            {"TOO_OLD", RetryOperator},
	CloseTooNew:            {"TOO_NEW", RetryElsewhere},
	CloseFenced:            {"FENCED_BY_NEWER_TRANSPORT", RetryConnection},
	CloseSessionSuperseded: {"SESSION_SUPERSEDED", RetryStop},
	CloseOverloaded:        {"OVERLOADED", RetryDelayed},
	CloseNotReady:          {"NOT_READY", RetryElsewhere},
	CloseInternal:          {"INTERNAL", RetryBackoff},
	CloseLost:              {"LOST", RetryBackoff},
}

// Valid reports whether r is one of the reasons.
func (r CloseReason) Valid() bool { return r >= CloseNormal && int(r) < len(closeFacts) }

// Retry says what an agent does after a close for r. A reason that this build does not know means backoff.
func (r CloseReason) Retry() RetryClass {
	if !r.Valid() {
		return RetryBackoff
	}
	return closeFacts[r].retry
}

func (r CloseReason) String() string {
	if !r.Valid() {
		return name(nil, uint8(r))
	}
	return closeFacts[r].name
}
