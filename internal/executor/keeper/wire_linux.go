package keeper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxMessage bounds a message between agent and keeper: a specification, which has at most 1 MiB, in JSON, or all of
// an attempt's secrets.
const maxMessage = 16 << 20

var errMessage = errors.New("message between agent and keeper is malformed")

// writeMessage sends a value. What held it is wiped, it may have held secrets.
func writeMessage(w io.Writer, value any) error {
	frame, err := frameOf(value)
	if err != nil {
		return err
	}
	defer clear(frame)
	_, err = w.Write(frame)
	return err
}

// frameOf is a value on its way: its length in four bytes, and JSON.
func frameOf(value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	defer clear(body)
	if len(body) > maxMessage {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errMessage, len(body), maxMessage)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	return append(frame, body...), nil
}

// messages takes messages apart that come in pieces.
type messages struct {
	r    io.Reader
	have []byte
}

func newMessages(r io.Reader) *messages { return &messages{r: r} }

// next waits for the next message.
func (m *messages) next(value any) error {
	piece := make([]byte, 32<<10)
	for {
		if ok, err := m.take(value); ok || err != nil {
			return err
		}
		n, err := m.r.Read(piece)
		m.feed(piece[:n])
		clear(piece[:n])
		if err != nil && n == 0 {
			return err
		}
	}
}

func (m *messages) feed(piece []byte) { m.have = append(m.have, piece...) }

// take takes a message, if a whole one has come.
func (m *messages) take(value any) (bool, error) {
	if len(m.have) < 4 {
		return false, nil
	}
	n := int(binary.BigEndian.Uint32(m.have))
	if n > maxMessage {
		return false, fmt.Errorf("%w: it announces %d bytes, at most %d", errMessage, n, maxMessage)
	}
	if len(m.have) < 4+n {
		return false, nil
	}
	err := json.Unmarshal(m.have[4:4+n], value)
	left := copy(m.have, m.have[4+n:])
	clear(m.have[left:])
	m.have = m.have[:left]
	if err != nil {
		return false, fmt.Errorf("%w: %w", errMessage, err)
	}
	return true, nil
}

// Rehearse has the messages of an attempt made and read once for nothing. The first time takes a millisecond or two, most of
// which is for package json to find out about their types; a keeper that waits for its attempt has that time.
func Rehearse() {
	step := uint16(0)
	for _, q := range []Request{
		{Setup: &Plan{Steps: []Step{{Argv: []string{""}}}, Env: []forge.EnvVar{{}}}}, {Start: &Start{Secrets: []Secret{{}}}}, {Go: &step},
	} {
		_ = rehearse(&q, &Request{}) // of our own making, it has no errors
	}
	for _, r := range []Report{{Ready: true}, {Starting: &step}, {Finished: &forge.StepResult{}}, {Over: &executor.Outcome{}}} {
		_ = rehearse(&r, nil)
	}
}

// rehearse makes a message, and reads it into another one unless that is nil.
func rehearse(said, read any) error {
	frame, err := frameOf(said)
	if err != nil || read == nil {
		return err
	}
	m := newMessages(nil)
	m.feed(frame)
	_, err = m.take(read)
	return err
}
