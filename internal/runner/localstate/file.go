package localstate

import (
	"crypto/subtle"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/postcard"
)

// Each file is magic | version u8 | Postcard | BLAKE3 of all before. Version and magic are inside the checksum.
const (
	magicIdentity = "FYSI"
	magicJournal  = "FYSJ"
	version1      = 1

	// maxFileBytes bounds a file: a completion with all that it may list is below it.
	maxFileBytes = 256 << 10
)

// What is wrong with a file.
var (
	errTooLarge = errors.New("it is larger than such a file can be")
	errTorn     = errors.New("its checksum is not that of its contents")
	errKind     = errors.New("it is of another kind or version")
)

// The points of a write at which a process may die, for tests.
const (
	pointCreated = "the temporary file is there"
	pointHalf    = "half of it is written"
	pointWritten = "it is written"
	pointSynced  = "it is on the disk"
	pointRenamed = "it has its name"
	pointDone    = "its name is on the disk"
)

func seal1(magic string, v any) ([]byte, error) {
	b := append([]byte(magic), version1)
	b, err := postcard.Append(b, v)
	if err != nil {
		return nil, err
	}
	sum := digest.Of(b)
	return append(b, sum[:]...), nil
}

// open1 reads what seal1 writes, and nothing else.
func open1(magic string, b []byte, v any) error {
	body := len(b) - digest.Size
	if body < len(magic)+1 {
		return errTorn
	}
	if sum := digest.Of(b[:body]); subtle.ConstantTimeCompare(sum[:], b[body:]) != 1 {
		return errTorn
	}
	if string(b[:len(magic)]) != magic || b[len(magic)] != version1 {
		return errKind
	}
	return postcard.Unmarshal(b[len(magic)+1:body], v)
}

// readBounded reads a file of at most maxFileBytes.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if len(b) > maxFileBytes {
		return nil, errTooLarge
	}
	return b, nil
}

// writeWhole makes b the contents of a file, durably and all at once: whoever reads it finds what was there before, or b.
func (f *Folder) writeWhole(dir, name string, b []byte) error {
	if len(b) > maxFileBytes {
		return errTooLarge
	}
	temp := filepath.Join(dir, tempPrefix+name)
	if err := f.writeTemp(temp, b); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	if err := f.at(pointRenamed); err != nil {
		return err
	}
	if err := disk.SyncFolder(dir); err != nil {
		return err
	}
	return f.at(pointDone)
}

func (f *Folder) writeTemp(path string, b []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.fill(file, b), file.Close())
}

func (f *Folder) fill(file *os.File, b []byte) error {
	if err := f.at(pointCreated); err != nil {
		return err
	}
	for _, part := range []struct {
		bytes []byte
		point string
	}{{b[:len(b)/2], pointHalf}, {b[len(b)/2:], pointWritten}} {
		if _, err := file.Write(part.bytes); err != nil {
			return err
		}
		if err := f.at(part.point); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return f.at(pointSynced)
}

func (f *Folder) at(point string) error {
	if f.fault == nil {
		return nil
	}
	return f.fault(point)
}
