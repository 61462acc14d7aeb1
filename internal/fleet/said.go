//go:build linux

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// Ear hears what a program says from now on. One goroutine uses it.
type Ear struct {
	of   *process
	from int64
}

// Listen returns an ear at the end of what the program has said.
func (p *process) Listen() (*Ear, error) {
	info, err := os.Stat(p.LogFile())
	if err != nil {
		return nil, err
	}
	return &Ear{of: p, from: info.Size()}, nil
}

// Await waits until the program says a text, and goes on behind the line that holds it.
func (e *Ear) Await(ctx context.Context, text string) error {
	return Await(ctx, fmt.Sprintf("%s to say %q", e.of.name, text), func() (bool, error) {
		said, err := e.rest()
		if err != nil {
			return false, err
		}
		for {
			end := bytes.IndexByte(said, '\n')
			if end < 0 {
				return false, nil // not a whole line yet
			}
			line := said[:end]
			said, e.from = said[end+1:], e.from+int64(end)+1
			if bytes.Contains(line, []byte(text)) {
				return true, nil
			}
		}
	})
}

func (e *Ear) rest() ([]byte, error) {
	f, err := os.Open(e.of.LogFile())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(e.from, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
