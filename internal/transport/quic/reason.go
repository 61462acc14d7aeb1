package quic

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// TLS alerts, as QUIC carries them: 0x100 and the number.
const (
	alertFirst               = 0x100
	alertLast                = 0x1ff
	alertBadCertificate      = 0x100 + 42
	alertUnsupportedCert     = 0x100 + 43
	alertCertificateRevoked  = 0x100 + 44
	alertCertificateExpired  = 0x100 + 45
	alertCertificateUnknown  = 0x100 + 46
	alertUnknownCA           = 0x100 + 48
	alertAccessDenied        = 0x100 + 49
	alertCertificateRequired = 0x100 + 116
	alertNoApplicationProto  = 0x100 + 120
)

// closeError says why a connection ended. err is what quic-go says.
func closeError(err error) *transport.CloseError {
	var known *transport.CloseError
	if errors.As(err, &known) {
		return known
	}
	closed := &transport.CloseError{Reason: forge.CloseLost, Err: err}
	var application *quic.ApplicationError
	var road *quic.TransportError
	var version *quic.VersionNegotiationError
	switch {
	case errors.As(err, &application):
		// The code says it all, and the peer's text is not for our log.
		closed.Reason, closed.Remote, closed.Err = codeReason(application.ErrorCode), application.Remote, nil
	case errors.As(err, &road):
		closed.Reason, closed.Remote = roadReason(road), road.Remote
	case errors.As(err, &version):
		closed.Reason = forge.CloseVersionMismatch
	}
	return closed
}

// codeReason reads an application error code, which may be larger than ours are.
func codeReason(code quic.ApplicationErrorCode) forge.CloseReason {
	if code > quic.ApplicationErrorCode(^protocol.CloseCode(0)) {
		return forge.CloseInternal
	}
	return protocol.CloseCode(code).Reason()
}

// roadReason says what an error of QUIC itself means, TLS alerts among them.
func roadReason(err *quic.TransportError) forge.CloseReason {
	switch {
	case err.ErrorCode == quic.ConnectionRefused:
		return forge.CloseOverloaded
	case err.ErrorCode >= alertFirst && err.ErrorCode <= alertLast:
		return alertReason(err)
	case err.ErrorCode == quic.NoError, err.ErrorCode == quic.NoViablePathError:
		return forge.CloseLost
	case err.ErrorCode == quic.InternalError:
		return forge.CloseInternal
	default:
		return forge.CloseProtocol
	}
}

// alertReason says what a TLS alert means. Only the peer can tell that our certificate has expired or was revoked: where
// this end found that of the peer's, what is wrong is not ours to mend.
func alertReason(err *quic.TransportError) forge.CloseReason {
	switch err.ErrorCode {
	case alertCertificateRevoked:
		if err.Remote {
			return forge.CloseRevoked
		}
		return forge.CloseAuthFailed
	case alertCertificateExpired:
		if err.Remote {
			return forge.CloseCertExpired
		}
		return forge.CloseAuthFailed
	case alertNoApplicationProto:
		return forge.CloseVersionMismatch
	case alertBadCertificate, alertUnsupportedCert, alertCertificateUnknown, alertUnknownCA, alertAccessDenied,
		alertCertificateRequired:
		return forge.CloseAuthFailed
	default:
		return forge.CloseProtocol
	}
}

// dialError says why a connection was not opened. Until the handshake is over nobody has proved to be a daemon, so what
// was said in a daemon's name cannot end an agent for good, nor make it ask for a new certificate.
func dialError(ctx context.Context, err error) *transport.CloseError {
	if ctx.Err() != nil {
		return &transport.CloseError{Reason: forge.CloseLost, Err: err}
	}
	closed := closeError(err)
	switch closed.Reason.Retry() {
	case forge.RetryStop, forge.RetryConnection, forge.RetryRecover:
		return &transport.CloseError{Reason: forge.CloseAuthFailed, Remote: closed.Remote, Err: err}
	}
	return closed
}
