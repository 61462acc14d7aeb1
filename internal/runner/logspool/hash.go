package logspool

import (
	"github.com/zeebo/blake3"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// asideBytes is from how many bytes on hashing goes on beside the next write, which takes about as long.
const asideBytes = 32 << 10

// hasher hashes the payloads of what was written. It is used by one goroutine at a time.
type hasher struct {
	tree  *blake3.Hasher
	spare []byte        // takes turns with the buffer that is hashed
	done  chan struct{} // of the hashing that goes on; nil if none does
}

func newHasher() hasher { return hasher{tree: blake3.New()} }

// add hashes the payloads of whole frames and returns a buffer to use instead of the one that it was given.
func (h *hasher) add(frames []byte, payload int) []byte {
	h.wait()
	if payload < asideBytes {
		h.write(frames)
		return frames
	}
	free := h.spare
	h.spare, h.done = frames, make(chan struct{})
	go func(done chan<- struct{}) {
		defer close(done)
		h.write(frames)
	}(h.done)
	return free
}

func (h *hasher) write(frames []byte) {
	for len(frames) > 0 {
		f, size, _ := parseFrame(frames, 0)
		_, _ = h.tree.Write(f.Bytes) // never fails
		frames = frames[size:]
	}
}

func (h *hasher) wait() {
	if h.done != nil {
		<-h.done
		h.done = nil
	}
}

// sum is the hash of all that was added.
func (h *hasher) sum() (d digest.Digest) {
	h.wait()
	h.tree.Sum(d[:0])
	return d
}
