package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sandbox begins with the start of this program, and most of what that costs is to map its pages, which are some thousand.
// The kernel can map memory by pieces of two megabytes, and many kernels do so for files in memory alone. So pid 1 of a sandbox
// is started from a copy of this program in memory, sealed so that nobody can write to it, not even pid 1 (ADR 0018).

// Sizes of programs that are copied, and of the pieces.
const (
	maxCopied  = 16 << 20
	pieceBytes = 2 << 20
)

var errTooBig = errors.New("this program is too big for a copy in memory")

// copyProgram puts this program into memory, in large pieces. The caller closes the file, which can be executed.
func copyProgram() (*os.File, error) {
	program, err := os.Open(itself)
	if err != nil {
		return nil, err
	}
	defer func() { _ = program.Close() }() // nothing was written
	info, err := program.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCopied {
		return nil, errTooBig
	}
	fd, err := unix.MemfdCreate("forgeyard-sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "copy of the program")
	defer func() { _ = memory.Close() }() // what is open for writing cannot be executed
	if err := memory.Truncate(info.Size()); err != nil {
		return nil, err
	}
	if err := fill(fd, program, int(info.Size())); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, fmt.Errorf("seal the copy of the program: %w", err)
	}
	return os.Open(handle(memory))
}

// fill copies a program into a file in memory, and has the kernel put that together to large pieces.
func fill(fd int, program io.Reader, size int) error {
	// Pieces are mapped where both their place in memory and that in the file is a multiple of their size.
	room := uintptr(size+pieceBytes-1)&^(pieceBytes-1) + pieceBytes
	free, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("room for the copy of the program: %w", err)
	}
	defer func() { _ = unix.MunmapPtr(free, room) }() // it was mapped
	place := unsafe.Add(free, (pieceBytes-uintptr(free)%pieceBytes)%pieceBytes)
	if _, err := unix.MmapPtr(fd, 0, place, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("map the copy of the program: %w", err)
	}
	content := unsafe.Slice((*byte)(place), size)
	if _, err := io.ReadFull(program, content); err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	if err := unix.Madvise(content[:size&^(pieceBytes-1)], unix.MADV_COLLAPSE); err != nil {
		return fmt.Errorf("large pieces of memory: %w", err)
	}
	return nil
}
