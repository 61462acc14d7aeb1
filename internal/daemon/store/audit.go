package store

// Audits lists audit events, newest first, those with a sequence below before (zero: all), at most limit, and the cursor of
// the next page, which is zero after the last.
func (v *View) Audits(before uint64, limit int) ([]AuditEvent, uint64, error) {
	return nil, 0, errUnbuilt
}

// AppendAudit appends an event. Its sequence and, where it has none, its time are set here.
func (tx *Tx) AppendAudit(e AuditEvent) error { return errUnbuilt }
