package git

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // the hash of git's files, where nothing rests on it
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
)

// The kinds of objects as packs number them.
var packKinds = map[string]byte{"commit": 1, "tree": 2, "blob": 3, "tag": 4}

// newHash is the hash of a repository's names and files.
func newHash(name string) (hash.Hash, error) {
	switch name {
	case "sha1":
		return sha1.New(), nil //nolint:gosec // see above
	case "sha256":
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("repositories with %s hashes are not known here", name)
}

// packWriter writes a pack whose bytes depend on nothing but the objects and their order: none is written as a difference
// to another, and none compressed, because what a compressor or the choice of differences gives changes from one version
// of git to the next.
//
//	pack  = "PACK" · version 2 · count · objects · hash of all that
//	object = kind and size · zlib stream of stored blocks
//	index = version 2: fan-out · ids · checksums · offsets · hash of the pack · hash of all that
type packWriter struct {
	hashName string
	dir      string
	file     *os.File
	out      *bufio.Writer
	sum      hash.Hash // of the pack
	crc      hash.Hash32
	offset   uint64
	entries  []packEntry
	count    uint32
}

type packEntry struct {
	id     []byte
	crc    uint32
	offset uint32
}

// newPack begins a pack of count objects in dir. It must be finished or aborted.
func newPack(hashName, dir string, count int) (*packWriter, error) {
	sum, err := newHash(hashName)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "tmp-")
	if err != nil {
		return nil, err
	}
	p := &packWriter{hashName: hashName, dir: dir, file: file, sum: sum, crc: crc32.NewIEEE(), count: uint32(count)}
	p.out = bufio.NewWriterSize(file, 256<<10)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.count)
	if err := p.write(head); err != nil {
		return nil, errors.Join(err, p.abort())
	}
	return p, nil
}

func (p *packWriter) write(data []byte) error {
	p.sum.Write(data) // hashes return no errors
	p.crc.Write(data)
	p.offset += uint64(len(data))
	_, err := p.out.Write(data)
	return err
}

// add writes one object. Objects come sorted by id, each once.
func (p *packWriter) add(id, kind string, size uint64, body io.Reader) error {
	number, ok := packKinds[kind]
	name, err := hex.DecodeString(id)
	if !ok || err != nil || len(name) != p.sum.Size() {
		return fmt.Errorf("object %q of kind %q", id, kind)
	}
	if p.offset > math.MaxInt32 {
		return fmt.Errorf("more than %d bytes in one pack", math.MaxInt32)
	}
	offset := uint32(p.offset)
	p.crc.Reset()
	if err := p.write(packHead(number, size)); err != nil {
		return err
	}
	if err := p.store(size, body); err != nil {
		return fmt.Errorf("object %s: %w", id, err)
	}
	p.entries = append(p.entries, packEntry{id: name, crc: p.crc.Sum32(), offset: offset})
	return nil
}

// packHead writes kind and size, seven bits a byte after the first four.
func packHead(kind byte, size uint64) []byte {
	head := []byte{kind<<4 | byte(size&0x0f)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	return head
}

// store writes size bytes of body as a zlib stream of stored blocks.
func (p *packWriter) store(size uint64, body io.Reader) error {
	if err := p.write([]byte{0x78, 0x01}); err != nil {
		return err
	}
	sum := adler32.New()
	block := make([]byte, min(size, math.MaxUint16))
	for left := size; ; {
		block = block[:min(left, math.MaxUint16)]
		if _, err := io.ReadFull(body, block); err != nil {
			return err
		}
		left -= uint64(len(block))
		sum.Write(block)
		head := []byte{0}
		if left == 0 {
			head[0] = 1
		}
		head = binary.LittleEndian.AppendUint16(head, uint16(len(block)))
		head = binary.LittleEndian.AppendUint16(head, ^uint16(len(block)))
		if err := p.write(head); err != nil {
			return err
		}
		if err := p.write(block); err != nil {
			return err
		}
		if left == 0 {
			return p.write(sum.Sum(nil))
		}
	}
}

// finish ends the pack, writes its index beside it, and returns the name that both have before their endings.
func (p *packWriter) finish() (string, error) {
	if len(p.entries) != int(p.count) {
		return "", errors.Join(fmt.Errorf("a pack of %d objects got %d", p.count, len(p.entries)), p.abort())
	}
	sum := p.sum.Sum(nil)
	_, err := p.out.Write(sum)
	if err = errors.Join(err, p.out.Flush(), p.file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(p.file.Name()))
	}
	base := filepath.Join(p.dir, "pack-"+hex.EncodeToString(sum))
	if err := os.Rename(p.file.Name(), base+".pack"); err != nil {
		return "", err
	}
	index, err := p.index(sum)
	if err != nil {
		return "", err
	}
	return base, os.WriteFile(base+".idx", index, 0o644) //nolint:gosec // what is in a repository is no secret of this user
}

func (p *packWriter) index(pack []byte) ([]byte, error) {
	data := []byte("\xfftOc\x00\x00\x00\x02")
	var fan [256]uint32
	for _, e := range p.entries {
		fan[e.id[0]]++
	}
	total := uint32(0)
	for _, n := range fan {
		total += n
		data = binary.BigEndian.AppendUint32(data, total)
	}
	for _, e := range p.entries {
		data = append(data, e.id...)
	}
	for _, e := range p.entries {
		data = binary.BigEndian.AppendUint32(data, e.crc)
	}
	for _, e := range p.entries {
		data = binary.BigEndian.AppendUint32(data, e.offset)
	}
	return seal(p.hashName, append(data, pack...))
}

// seal puts the hash of data behind it, as git's files end.
func seal(hashName string, data []byte) ([]byte, error) {
	sum, err := newHash(hashName)
	if err != nil {
		return nil, err
	}
	sum.Write(data)
	return sum.Sum(data), nil
}

func (p *packWriter) abort() error {
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}
