package store

const auditColumns = `e.seq, e.at, e.kind, e.actor, e.runner, e.subject, e.detail`

func auditInto(e *AuditEvent) []any {
	return []any{num(&e.Sequence), num(&e.At), &e.Kind, &e.Actor, id(&e.Runner.ULID), &e.Subject, &e.Detail}
}

// Audits lists audit events, newest first, those with a sequence below before (zero: all), at most limit, and the cursor of
// the next page, which is zero after the last.
func (v *View) Audits(before uint64, limit int) ([]AuditEvent, uint64, error) {
	text, args := `SELECT `+auditColumns+` FROM audit e ORDER BY e.seq DESC LIMIT ?`, []any{page(limit)}
	if before > 0 {
		text, args = `SELECT `+auditColumns+` FROM audit e WHERE e.seq < ? ORDER BY e.seq DESC LIMIT ?`, []any{toInt(before), page(limit)}
	}
	events, err := list(v, text, auditInto, args...)
	if err != nil || int64(len(events)) < page(limit) {
		return events, 0, err
	}
	return events, events[len(events)-1].Sequence, nil
}

// AppendAudit appends an event. Its sequence and, where it has none, its time are set here.
func (tx *Tx) AppendAudit(e AuditEvent) error {
	seq, err := tx.next("audit")
	if err != nil {
		return err
	}
	if e.At == 0 {
		e.At = tx.now
	}
	return tx.write(`INSERT INTO audit (seq, at, kind, actor, runner, subject, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		toInt(seq), toInt(e.At), e.Kind, e.Actor, e.Runner.ULID[:], e.Subject, e.Detail)
}
