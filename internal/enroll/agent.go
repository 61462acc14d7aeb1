package enroll

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Refused is the daemon's no. Reason says what to do next, Text is for people.
type Refused struct {
	Reason forge.CloseReason
	Text   string // may be empty
}

func (e *Refused) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("the daemon refused it: %v", e.Reason)
	}
	return fmt.Sprintf("the daemon refused it: %s (%v)", e.Text, e.Reason)
}

// ErrAnswer is for an answer of the daemon that this agent cannot use. Nothing of it was kept.
var ErrAnswer = errors.New("the daemon's answer does not fit what was asked")

// maxAside bounds the messages before the answer that are not it.
const maxAside = 8

// Enroll gets an agent's first certificate. The connection was dialled with trust.EnrollTLS for the token's CA; it is
// closed in any case. The key is stored before, by trust.Folder.Key: asking again with the same token and key, after whatever
// went wrong, gives the same runner. Save the identity before it is used. The error is a *Refused where the daemon said no.
func Enroll(
	ctx context.Context, conn transport.Conn, cfg link.Config, token trust.Token, key trust.Key, name string,
) (*trust.Identity, error) {
	text := []byte(token.Reveal())
	defer clear(text)
	w := &agentv1.EnrollV1{Token: protocol.NewSecret(text), Name: name}
	defer w.Token.Wipe()
	answer, err := ask(ctx, conn, cfg, w, key)
	if err != nil {
		return nil, fmt.Errorf("enrol: %w", err)
	}
	id, err := identity(key, answer)
	if err == nil && !id.Roots().Has(token.CA()) {
		err = fmt.Errorf("%w: the CA of the token is not among those it gave", ErrAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("enrol: %w", err)
	}
	return id, nil
}

// Recoverable reports whether an agent that was refused for a reason asks by Recover what is wrong. A TLS alert says little:
// a revoked, superseded or expired certificate and one of another cluster may all look alike.
func Recoverable(reason forge.CloseReason) bool {
	return reason == forge.CloseCertExpired || reason == forge.CloseAuthFailed
}

// Recover gets the next certificate of an agent whose last one the daemon does not take any more, by proof of its key. The
// connection was dialled with trust.RecoverTLS; it is closed in any case. A *Refused says for good what is wrong with the
// runner, where a TLS alert could not.
func Recover(ctx context.Context, conn transport.Conn, cfg link.Config, old *trust.Identity) (*trust.Identity, error) {
	answer, err := ask(ctx, conn, cfg, &agentv1.EnrollV1{}, old.Key())
	if err != nil {
		return nil, fmt.Errorf("recover the certificate: %w", err)
	}
	id, err := identity(old.Key(), answer)
	if err == nil {
		err = follows(old, id)
	}
	if err != nil {
		return nil, fmt.Errorf("recover the certificate: %w", err)
	}
	return id, nil
}

// NewRenewal makes the request for the next certificate, for the control stream of a registered connection. It may be sent
// again, also on another connection, until an answer comes.
func NewRenewal(old *trust.Identity, session forge.AgentSessionID) (*agentv1.RenewCertificateV1, error) {
	request, err := trust.NewRequest(old.Key())
	if err != nil {
		return nil, err
	}
	return &agentv1.RenewCertificateV1{Peer: protocol.NewPeer(old.Runner(), session), Request: request}, nil
}

// Renewed makes the next identity of the answer. Save it before it is used; the old one stays good until then.
func Renewed(old *trust.Identity, w *agentv1.CertificateIssuedV1) (*trust.Identity, error) {
	id, err := trust.NewIdentity(old.Key(), w.Certificate.Chain, w.Certificate.Roots)
	if err == nil {
		err = follows(old, id)
	}
	if err != nil {
		return nil, fmt.Errorf("renew the certificate: %w", err)
	}
	return id, nil
}

// follows refuses a successor that is another runner's, or of another cluster: the daemon that gave it was authenticated,
// but nothing may change under an agent without anybody at the agent.
func follows(old, id *trust.Identity) error {
	if id.Runner() != old.Runner() || id.Cluster() != old.Cluster() {
		return fmt.Errorf("%w: it is for another runner or cluster", ErrAnswer)
	}
	return nil
}

func identity(key trust.Key, answer *agentv1.EnrollAcceptedV1) (*trust.Identity, error) {
	id, err := trust.NewIdentity(key, answer.Certificate.Chain, answer.Certificate.Roots)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if id.Runner().ULID != forge.ULID(answer.Runner) {
		return nil, fmt.Errorf("%w: its certificate names another runner", ErrAnswer)
	}
	return id, nil
}

// ask sends one request on the road of enrolment and waits for its answer.
func ask(
	ctx context.Context, conn transport.Conn, cfg link.Config, w *agentv1.EnrollV1, key trust.Key,
) (*agentv1.EnrollAcceptedV1, error) {
	var err error
	if w.Request, err = trust.NewRequest(key); err != nil {
		conn.Close(protocol.CloseCodeOf(forge.CloseNormal))
		return nil, err
	}
	if cfg.Role == 0 {
		cfg.Role = protocol.RoleAgent
	}
	l, err := link.Connect(ctx, conn, cfg, forge.AgentSessionID{})
	if err != nil {
		return nil, saidNo(err, nil)
	}
	defer l.Close(forge.CloseNormal)
	id := ident.New[forge.MessageID]()
	if err := l.SendWire(ctx, id, forge.MessageID{}, w); err != nil {
		return nil, saidNo(err, nil)
	}
	return await(ctx, l, id)
}

func await(ctx context.Context, l *link.Link, id forge.MessageID) (*agentv1.EnrollAcceptedV1, error) {
	var said *forge.Error // the sentence before the close
	for range maxAside {
		m, err := l.Receive(ctx)
		if err != nil {
			return nil, saidNo(err, said)
		}
		if m.Re != id {
			continue
		}
		if w, ok := m.Wire.(*agentv1.EnrollAcceptedV1); ok {
			return w, nil
		}
		if said, _ = m.Domain.(*forge.Error); said == nil {
			return nil, ErrAnswer
		}
	}
	return nil, fmt.Errorf("%w: it said much and answered nothing", ErrAnswer)
}

// saidNo makes a *Refused of a close by the daemon that means one, or of its sentence alone where the close was lost.
func saidNo(err error, said *forge.Error) error {
	closed, ok := errors.AsType[*transport.CloseError](err)
	remote := ok && closed.Remote
	switch {
	case said != nil && remote && closed.Reason != forge.CloseLost && closed.Reason != forge.CloseNormal:
		return &Refused{closed.Reason, said.Text}
	case said != nil:
		return &Refused{reasonOf(said), said.Text}
	case remote && closed.Reason.Retry() != forge.RetryBackoff && closed.Reason != forge.CloseNormal:
		return &Refused{Reason: closed.Reason}
	}
	return err
}

// reasonOf is the mildest reason that fits what an Error says.
func reasonOf(said *forge.Error) forge.CloseReason {
	switch said.Retry {
	case forge.RetryStop:
		return forge.CloseRevoked
	case forge.RetryOperator:
		return forge.CloseAuthFailed
	default:
		return forge.CloseInternal
	}
}
