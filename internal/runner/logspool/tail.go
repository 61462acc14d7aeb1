package logspool

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// tail is what a log that is over its limit ends with: the latest bytes, in memory.
type tail struct {
	limit  forge.Bytes // zero: there is none
	most   forge.Bytes // of the tail
	kept   forge.Bytes // in the head
	over   bool        // the head is full
	held   int
	lost   uint64
	pieces []piece
	gone   int // so many of them are trimmed away
}

// pieceBytes is what a piece of a tail costs besides its bytes.
const pieceBytes = 64

// piece is output of one stream.
type piece struct {
	stream forge.LogStream
	at     forge.WallTime
	bytes  []byte
}

func newTail(limit forge.Bytes) tail { return tail{limit: limit, most: min(limit/4, maxTail)} }

// head says how many of n more bytes belong to the head, and counts them.
func (t *tail) head(n int) int {
	if t.limit == 0 {
		return n
	}
	if t.over {
		return 0
	}
	left := t.limit - t.most - t.kept
	if forge.Bytes(n) > left {
		n, t.over = int(left), true
	}
	t.kept += forge.Bytes(n)
	return n
}

// add takes bytes and forgets the oldest.
func (t *tail) add(stream forge.LogStream, p []byte, at forge.WallTime) {
	if extra := len(p) - int(t.most); extra > 0 {
		t.lost += uint64(extra)
		p = p[extra:]
	}
	t.held += len(p)
	for len(p) > 0 {
		last := len(t.pieces) - 1
		if last < t.gone || t.pieces[last].stream != stream || len(t.pieces[last].bytes) == forge.MaxLogPayload {
			t.pieces = append(t.pieces, piece{stream: stream, at: at})
			last++
		}
		to := &t.pieces[last]
		n := min(len(p), forge.MaxLogPayload-len(to.bytes))
		to.bytes = append(to.bytes, p[:n]...)
		p = p[n:]
	}
	t.trim()
}

// trim forgets the oldest bytes until the rest fits. What a piece costs besides its bytes counts too, so that many small
// ones do not take more memory than they seem to.
func (t *tail) trim() {
	for extra := t.cost() - int(t.most); extra > 0; extra = t.cost() - int(t.most) {
		first := &t.pieces[t.gone]
		n := min(extra, len(first.bytes))
		first.bytes = first.bytes[n:]
		t.held -= n
		t.lost += uint64(n)
		if len(first.bytes) == 0 {
			*first = piece{}
			t.gone++
		}
	}
	if t.gone > len(t.pieces)/2 {
		t.pieces = slices.Delete(t.pieces, 0, t.gone)
		t.gone = 0
	}
}

func (t *tail) cost() int { return t.held + pieceBytes*(len(t.pieces)-t.gone-1) }

// all returns what is left.
func (t *tail) all() []piece { return t.pieces[t.gone:] }
