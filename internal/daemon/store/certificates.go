package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func lowered(runner forge.RunnerID) string { return strings.ToLower(runner.String()) }

const certificateColumns = `c.serial, c.runner, c.key, c.not_before, c.not_after, c.issued_at, c.used_at, c.superseded`

func certificateInto(c *Certificate) []any {
	return []any{
		&c.Serial, id(&c.Runner.ULID), hash(&c.Key), num(&c.NotBefore), num(&c.NotAfter), num(&c.Issued), num(&c.Used),
		flag{&c.Superseded},
	}
}

// Certificates lists the certificates of a runner, newest first, at most limit.
func (v *View) Certificates(runner forge.RunnerID, limit int) ([]Certificate, error) {
	return list(v, `SELECT `+certificateColumns+` FROM certificate c WHERE c.runner = ? ORDER BY c.seq DESC LIMIT ?`,
		certificateInto, runner.ULID[:], page(limit))
}

func (v *View) certificate(serial string) (Certificate, error) {
	return one(v, `SELECT `+certificateColumns+` FROM certificate c WHERE c.serial = ?`, certificateInto, serial)
}

// RecordCertificate writes an issued certificate down, before anybody gets it. A serial that is there already changes
// nothing. ErrKeyUnknown where the runner's key is another one now; ErrRevoked for a runner that is revoked or deleted.
func (tx *Tx) RecordCertificate(c Certificate) error {
	if _, err := tx.certificate(c.Serial); !isNotFound(err) {
		return err
	}
	r, err := tx.ownerOf(&c)
	if err != nil {
		return err
	}
	owner, err := tx.RunnerByKey(c.Key)
	switch {
	case isNotFound(err) || err == nil && owner.ID != c.Runner:
		return ErrKeyUnknown
	case err != nil:
		return err
	case r.Revoked:
		return ErrRevoked
	}
	return tx.insertCertificate(&c)
}

// ownerOf returns the runner of a certificate; one that was deleted counts as revoked.
func (tx *Tx) ownerOf(c *Certificate) (Runner, error) {
	r, err := tx.Runner(c.Runner)
	if isNotFound(err) {
		return Runner{}, fmt.Errorf("%w: runner %v is not there any more", ErrRevoked, c.Runner)
	}
	return r, err
}

func (tx *Tx) insertCertificate(c *Certificate) error {
	seq, err := tx.next("certificate")
	if err != nil {
		return err
	}
	return tx.write(`INSERT INTO certificate (serial, seq, runner, key, not_before, not_after, issued_at, used_at, superseded)
		VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0)`, c.Serial, toInt(seq), c.Runner.ULID[:], c.Key[:], toInt(c.NotBefore), toInt(c.NotAfter), toInt(tx.now))
}

// CertificateUse is what came of the use of a certificate.
type CertificateUse struct {
	First      bool // it was not in use before
	Unrecorded bool // it was not known here and is recorded now: the tables were restored from an older copy
}

// UseCertificate notes that a runner has proved a certificate. With its first use, all certificates of the runner that were
// recorded before it are superseded; until then they stay good, since the agent may never have got the newer one. ErrRevoked,
// ErrDisabled, ErrSuperseded.
func (tx *Tx) UseCertificate(c Certificate) (CertificateUse, error) {
	r, err := tx.ownerOf(&c)
	if err == nil {
		err = mayEnrol(&r)
	}
	if err != nil {
		return CertificateUse{}, err
	}
	var use CertificateUse
	known, err := tx.certificate(c.Serial)
	switch {
	case isNotFound(err):
		use.Unrecorded = true
		if err := tx.insertCertificate(&c); err != nil {
			return CertificateUse{}, err
		}
	case err != nil:
		return CertificateUse{}, err
	case known.Runner != c.Runner:
		return CertificateUse{}, errors.New("store: the certificate was issued to another runner")
	case known.Superseded:
		return CertificateUse{}, ErrSuperseded
	case known.Used != 0:
		return CertificateUse{}, nil
	}
	use.First = true
	return use, tx.firstUse(&c)
}

func (tx *Tx) firstUse(c *Certificate) error {
	if err := tx.write(`UPDATE certificate SET used_at = ? WHERE serial = ?`, max(1, toInt(tx.now)), c.Serial); err != nil {
		return err
	}
	_, err := tx.exec(`UPDATE certificate SET superseded = 1 WHERE runner = ? AND superseded = 0
		AND seq < (SELECT n.seq FROM certificate n WHERE n.serial = ?)`, c.Runner.ULID[:], c.Serial)
	return err
}
