package localstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// maxRecords bounds how many records are read. A process holds fewer attempts by far; more are set aside.
const maxRecords = 4 * forge.MaxAttemptsPerAgent

// errName says that a record lies under the name of another attempt.
var errName = errors.New("it is the record of another attempt than its name says")

// recordV1 is one file of the journal. The completion has its wire form, which is frozen.
type recordV1 struct {
	Context    protocol.ContextV1
	Version    uint64
	State      uint8 // a forge.AttemptState
	Completion *agentv1.CompletionV1
}

// Write makes a record durable. After an error it may be tried again; what is on the disk is then the record before it,
// or this one.
func (f *Folder) Write(r core.Record) error {
	b, err := encodeRecord(r)
	if err == nil {
		err = f.writeWhole(f.in(journalName), r.Context.Attempt.String(), b)
	}
	if err != nil {
		return fmt.Errorf("write the record of attempt %v: %w", r.Context.Attempt, err)
	}
	return nil
}

// Drop removes the record of an attempt. One that is not there is no error.
func (f *Folder) Drop(attempt forge.AttemptID) error {
	err := os.Remove(f.in(journalName, attempt.String()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = disk.SyncFolder(f.in(journalName))
	}
	if err != nil {
		return fmt.Errorf("drop the record of attempt %v: %w", attempt, err)
	}
	return nil
}

// Load returns every record that can be believed, in the order of their attempts, and sets the others aside. An error
// says that the folder itself cannot be read.
func (f *Folder) Load() ([]core.Record, error) {
	entries, err := os.ReadDir(f.in(journalName))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var records []core.Record
	for _, e := range entries {
		path := f.in(journalName, e.Name())
		r, err := readRecord(path, e)
		if err == nil && len(records) == maxRecords {
			err = fmt.Errorf("there are more than %d", maxRecords)
		}
		if err != nil {
			f.quarantine(path, err)
			continue
		}
		records = append(records, r)
	}
	return records, nil
}

func readRecord(path string, e os.DirEntry) (core.Record, error) {
	if !e.Type().IsRegular() {
		return core.Record{}, errKind
	}
	b, err := readBounded(path)
	if err != nil {
		return core.Record{}, err
	}
	r, err := decodeRecord(b)
	if err == nil && r.Context.Attempt.String() != e.Name() {
		err = errName
	}
	return r, err
}

// encodeRecord refuses what decodeRecord would. The hash of a completion that is not whole yet is not there either; on
// the disk it stands all the same, and is taken away again when the record is read.
func encodeRecord(r core.Record) ([]byte, error) {
	w := recordV1{Context: protocol.NewContext(r.Context), Version: r.Version, State: uint8(r.State)}
	if r.Completion != nil {
		c := *r.Completion
		if r.State != forge.AttemptCompleting {
			c.Hash = c.ResultHash()
		}
		w.Completion = agentv1.NewCompletion(&c)
	}
	if _, err := w.domain(); err != nil {
		return nil, err
	}
	return seal1(magicJournal, &w)
}

func decodeRecord(b []byte) (core.Record, error) {
	var w recordV1
	if err := open1(magicJournal, b, &w); err != nil {
		return core.Record{}, err
	}
	return w.domain()
}

func (w *recordV1) domain() (core.Record, error) {
	r := core.Record{Context: w.Context.Domain(), Version: w.Version, State: forge.AttemptState(w.State)}
	switch {
	case r.Context.Validate() != nil:
		return core.Record{}, r.Context.Validate()
	case r.State < forge.AttemptOffered || r.State > forge.AttemptRefused:
		return core.Record{}, fmt.Errorf("an attempt has no state %d", w.State)
	case w.Completion == nil:
		return r, nil
	}
	m, err := w.Completion.Domain()
	if err != nil {
		return core.Record{}, err
	}
	r.Completion = m.(*forge.Completion)
	if r.State != forge.AttemptCompleting {
		r.Completion.Hash = [32]byte{}
	}
	if r.Completion.Context != r.Context {
		return core.Record{}, errName
	}
	return r, nil
}
