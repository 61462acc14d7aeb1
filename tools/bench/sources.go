//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// memoryDisk is where file trees are measured: removing and making many files says more about a disk than about us.
const memoryDisk = "/dev/shm"

// memoryFolder makes a folder in memory.
func memoryFolder() (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(memoryDisk, &fs); err != nil {
		return "", fmt.Errorf("%s: %w", memoryDisk, err)
	}
	if fs.Type != unix.TMPFS_MAGIC {
		return "", errors.New(memoryDisk + " is no tmpfs, and trees are measured on one")
	}
	return os.MkdirTemp(memoryDisk, "fybench")
}

// The shape of a source tree, which is about that of Go's sources with some modules: 250 MB in 50,000 files, half of which have
// less than 2 KiB.
const (
	treeFiles  = 50_000
	perFolder  = 12 // files
	perParent  = 6  // folders
	smallFile  = 2 << 10
	mediumFile = 8 << 10
	largeFile  = 40 << 10
)

// plant writes a tree of so many files, always the same: noise, so that no two are equal.
func plant(dir string, files int) error {
	r := rand.New(rand.NewPCG(1, uint64(files))) //nolint:gosec // the same each time
	noise := rand.NewChaCha8([32]byte{2})
	for i := 0; i < files; i += perFolder {
		folder := filepath.Join(dir, folderOf(i/perFolder))
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as a checkout has it
			return err
		}
		for j := i; j < min(i+perFolder, files); j++ {
			b := make([]byte, sizeOf(r))
			_, _ = noise.Read(b) // never fails
			mode := os.FileMode(0o644)
			if j%50 == 0 {
				mode = 0o755
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file-%d.go", j)), b, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// folderOf spells the place of a folder, some of which are within others.
func folderOf(n int) string {
	if n < perParent {
		return fmt.Sprintf("folder-%d", n)
	}
	return filepath.Join(folderOf(n/perParent-1), fmt.Sprintf("folder-%d", n%perParent))
}

func sizeOf(r *rand.Rand) int {
	switch p := r.IntN(100); {
	case p < 50:
		return r.IntN(smallFile)
	case p < 85:
		return r.IntN(mediumFile)
	default:
		return r.IntN(largeFile)
	}
}
