package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// The file of an index.
//
//	index = magic · body · BLAKE3 of both
//	body  = root · at · git · untracked · judged · dirty · guards · notes · folders · repository
//
// Numbers are little-endian with eight bytes, lists and texts stand behind their length. It is read on the machine that
// wrote it: another form gets another magic, and the file is then as good as none.
const (
	indexMagic = "forgeyard source index 1\n"
	maxIndex   = 1 << 30 // bytes
)

// errIndex says that a file is no index of this form.
var errIndex = errors.New("not an index")

// loadIndex returns what a file knows of a folder, or an index that knows nothing.
func loadIndex(file, root string, git bool) *index {
	empty := &index{root: root, git: git}
	if file == "" {
		return empty
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return empty
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return empty
	}
	x, err := decodeIndex(data)
	if err != nil || x.root != root || x.git != git {
		return empty
	}
	return x
}

// save writes the index to a file, in whole or not at all.
func (x *index) save(file string) error {
	data := x.encode()
	if len(data) > maxIndex {
		return fmt.Errorf("%d bytes, of at most %d", len(data), maxIndex)
	}
	return disk.WriteFile(file, data, 0o600)
}

func (x *index) encode() []byte {
	w := &writer{data: make([]byte, 0, 1<<10+int(x.size())*160)}
	w.data = append(w.data, indexMagic...)
	w.text(x.root)
	w.number(uint64(x.at))
	w.flags(x.git, x.untracked, x.dirty)
	w.text(x.judged)
	w.number(uint64(len(x.guards)))
	for i := range x.guards {
		w.text(x.guards[i].path)
		w.stamp(x.guards[i].stamp)
	}
	w.number(uint64(len(x.notes)))
	for _, n := range x.notes {
		w.text(string(n.Kind))
		w.text(n.Path)
		w.text(n.Text)
	}
	w.number(uint64(x.more))
	w.number(uint64(len(x.folders)))
	for i := range x.folders {
		w.folder(&x.folders[i])
	}
	w.clean(&x.clean)
	sum := digest.Of(w.data)
	return append(w.data, sum[:]...)
}

func decodeIndex(data []byte) (*index, error) {
	at := len(data) - digest.Size
	if at < len(indexMagic) || !bytes.HasPrefix(data, []byte(indexMagic)) || digest.Of(data[:at]) != digest.Digest(data[at:]) {
		return nil, errIndex
	}
	r := &reader{text: string(data[len(indexMagic):at])}
	x := &index{loaded: true, root: r.string()}
	x.at = int64(r.number())
	r.flags(&x.git, &x.untracked, &x.dirty)
	x.judged = r.string()
	x.guards = make([]guard, r.count(8+stampBytes))
	for i := range x.guards {
		x.guards[i] = guard{r.string(), r.stamp()}
	}
	x.notes = make([]Warning, r.count(3*8))
	for i := range x.notes {
		x.notes[i] = Warning{WarningKind(r.string()), r.string(), r.string()}
	}
	x.more = int(r.number())
	x.folders = make([]folder, r.count(folderBytes))
	for i := range x.folders {
		r.folder(&x.folders[i])
		if above := x.folders[i].above; above >= i || (above < 0) != (i == 0) {
			r.failed = true
		}
	}
	r.clean(&x.clean)
	if r.failed || r.text != "" {
		return nil, errIndex
	}
	return x, nil
}

// Least sizes of parts, which bound what a length can ask for.
const (
	refBytes    = digest.Size + 8
	stampBytes  = 5 * 8
	entryBytes  = 8 + 1 + stampBytes + 1
	folderBytes = 8 + stampBytes + 8 + 1 + refBytes + 8
)

type writer struct{ data []byte }

func (w *writer) number(n uint64) { w.data = binary.LittleEndian.AppendUint64(w.data, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.data = append(w.data, s...)
}

// flags writes up to eight of them into a byte.
func (w *writer) flags(flags ...bool) {
	b := byte(0)
	for i, on := range flags {
		if on {
			b |= 1 << i
		}
	}
	w.data = append(w.data, b)
}

func (w *writer) stamp(s stamp) {
	for _, n := range [...]uint64{uint64(s.size), uint64(s.mtime), uint64(s.ctime), s.inode, uint64(s.mode)} {
		w.number(n)
	}
}

func (w *writer) ref(r digest.Ref) {
	w.data = append(w.data, r.Digest[:]...)
	w.number(r.Bytes)
}

func (w *writer) folder(f *folder) {
	w.text(f.path)
	w.stamp(f.stamp)
	w.number(uint64(f.above + 1))
	w.flags(f.changed)
	w.ref(f.ref)
	w.number(f.totals.Files)
	w.number(uint64(f.totals.Bytes))
	w.number(uint64(f.totals.Depth)<<8 | uint64(f.totals.Hazards))
	w.number(uint64(len(f.entries)))
	for i := range f.entries {
		e := &f.entries[i]
		w.text(e.name)
		w.data = append(w.data, byte(e.kind)|byte(e.bit)<<4)
		w.stamp(e.stamp)
		w.flags(e.exec, e.racy)
		switch e.kind {
		case file:
			w.ref(e.ref)
		case link:
			w.text(e.text)
		case leftOut:
			w.text(string(e.why))
			w.text(e.text)
		}
	}
}

func (w *writer) clean(c *cleanEntry) {
	w.data = append(w.data, c.key[:]...)
	w.ref(c.tree.Root)
	w.number(c.tree.Files)
	w.number(uint64(c.tree.Bytes))
	w.number(uint64(c.tree.Depth))
	w.number(uint64(len(c.refs)))
	for _, r := range c.refs {
		w.ref(r)
	}
}

// reader takes apart what writer wrote. After something that does not fit it gives zeros.
type reader struct {
	text   string // what is left
	failed bool
}

func (r *reader) bytes(n uint64) string {
	if n > uint64(len(r.text)) {
		r.failed, r.text = true, ""
		return ""
	}
	part := r.text[:n]
	r.text = r.text[n:]
	return part
}

func (r *reader) number() uint64 {
	part := r.bytes(8)
	if r.failed {
		return 0
	}
	n := uint64(0)
	for i := 7; i >= 0; i-- {
		n = n<<8 | uint64(part[i])
	}
	return n
}

func (r *reader) string() string { return r.bytes(r.number()) }

// count reads a length of parts that have so many bytes at least.
func (r *reader) count(least uint64) int {
	n := r.number()
	if n > uint64(len(r.text))/least {
		r.failed = true
		return 0
	}
	return int(n)
}

func (r *reader) byte() byte {
	part := r.bytes(1)
	if r.failed {
		return 0
	}
	return part[0]
}

func (r *reader) flags(flags ...*bool) {
	b := r.byte()
	for i, on := range flags {
		*on = b&(1<<i) != 0
	}
	r.failed = r.failed || b>>len(flags) != 0
}

func (r *reader) stamp() stamp {
	return stamp{
		size: int64(r.number()), mtime: int64(r.number()), ctime: int64(r.number()), inode: r.number(), mode: r.narrow(),
	}
}

func (r *reader) narrow() uint32 {
	n := r.number()
	r.failed = r.failed || n > math.MaxUint32
	return uint32(n)
}

func (r *reader) digest() (d digest.Digest) {
	copy(d[:], r.bytes(digest.Size))
	return d
}

func (r *reader) ref() digest.Ref { return digest.Ref{Digest: r.digest(), Bytes: r.number()} }

func (r *reader) folder(f *folder) {
	f.path = r.string()
	f.stamp = r.stamp()
	f.above = int(r.number()) - 1
	r.flags(&f.changed)
	f.ref = r.ref()
	f.totals.Files, f.totals.Bytes = r.number(), forge.Bytes(r.number())
	packed := r.narrow()
	f.totals.Depth, f.totals.Hazards = uint16(packed>>8), tree.Hazards(packed)
	f.entries = make([]entry, r.count(entryBytes))
	for i := range f.entries {
		r.entry(&f.entries[i])
	}
}

func (r *reader) entry(e *entry) {
	e.name = r.string()
	b := r.byte()
	e.kind, e.bit = kind(b&0x0f), bit(b>>4)
	e.stamp = r.stamp()
	r.flags(&e.exec, &e.racy)
	switch e.kind {
	case unknown:
	case file:
		e.ref = r.ref()
	case link:
		e.text = r.string()
	case leftOut:
		e.why, e.text = WarningKind(r.string()), r.string()
	default:
		r.failed = true
	}
}

func (r *reader) clean(c *cleanEntry) {
	c.key = r.digest()
	c.tree = forge.TreeRef{Root: r.ref(), Files: r.number(), Bytes: forge.Bytes(r.number()), Depth: uint16(r.narrow())}
	c.refs = make([]digest.Ref, r.count(refBytes))
	for i := range c.refs {
		c.refs[i] = r.ref()
	}
}
