package store

import (
	"os"
	"strings"
	"testing"
)

// scale makes the story sixteen times smaller than it is in earnest.
const scale = 16

// written writes so many bytes in many transactions and returns how long the file of the log was at the most.
func written(t *testing.T, s *Store, bytes int64) (most int64) {
	t.Helper()
	const each = 64 << 10
	detail := strings.Repeat("x", each)
	for n := int64(0); n < bytes; n += each {
		if err := s.Update(t.Context(), ClassRest, func(tx *Tx) error { return tx.AppendAudit(AuditEvent{Detail: detail}) }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(s.dir.database() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	return most
}

func TestTheWriteAheadLogStaysBoundedUnderLoad(t *testing.T) {
	s := hooked(t, hooks{walScale: scale})
	if most := written(t, s, 3*WALBound/scale); most > WALBound/scale {
		t.Errorf("the log grew to %d bytes, its bound is %d", most, WALBound/scale)
	}
}

// A view keeps its state, and with it the log; when it is over, the log begins anew.
func TestAfterALongViewTheLogBeginsAnew(t *testing.T) {
	s := hooked(t, hooks{walScale: scale})
	err := s.View(t.Context(), func(v *View) error {
		if _, _, err := v.Audits(0, 1); err != nil {
			return err
		}
		written(t, s, 2*walHigh/scale)
		events, _, err := v.Audits(0, 1)
		if len(events) > 0 {
			t.Error("the view sees what was written after it began")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reader := s.readers.borrow(t)
	for range 100 { // the log is emptied beside the writer, which has to find it empty once
		written(t, s, walHigh/scale/16)
		state, err := checkpoint(reader, "NOOP")
		if err != nil {
			t.Fatal(err)
		}
		if state.bytes() <= walHigh/scale {
			return
		}
	}
	t.Error("the log never begins anew")
}

// borrow takes a reader for the length of the test.
func (r *readers) borrow(t *testing.T) *conn {
	c := <-r.free
	t.Cleanup(func() { r.free <- c })
	return c
}
