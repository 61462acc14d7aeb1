//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Every bomb stops at Target.Most, wherever the limit of the sandbox is.

// forkBomb starts processes until there are no more, or Most are.
func forkBomb(t *Target) Verdict {
	var started int64
	for ; started < t.Most; started++ {
		process, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
		if err != nil {
			return denied(fmt.Sprintf("%d processes, then", started), err)
		}
		_ = process.Release() // all of them die with the sandbox
	}
	return worked("started %d processes", started)
}

// memoryBomb takes memory and uses it.
func memoryBomb(t *Target) Verdict {
	const step = 1 << 20
	for taken := int64(0); taken < t.Most; taken += step {
		data, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return denied(fmt.Sprintf("%d MiB, then", taken>>20), err)
		}
		for at := 0; at < len(data); at += os.Getpagesize() {
			data[at] = 1
		}
	}
	return worked("used %d MiB of memory", t.Most>>20)
}

// fileBomb fills every folder that is in memory.
func fileBomb(t *Target) Verdict {
	var written int64
	block, last := make([]byte, 1<<20), error(nil)
	for _, dir := range inMemory() {
		name := filepath.Join(dir, "bomb")
		file, err := os.Create(name)
		if err != nil {
			last = err
			continue
		}
		for written < t.Most {
			n, err := file.Write(block)
			written += int64(n)
			if err != nil {
				last = err
				break
			}
		}
		_ = file.Close() // left where it is: the memory is to be full
	}
	if written >= t.Most {
		return worked("wrote %d MiB into memory", written>>20)
	}
	return denied(fmt.Sprintf("%d MiB, then", written>>20), last)
}

// inodeBomb makes files in a folder that is in memory.
func inodeBomb(t *Target) Verdict {
	var made int64
	var last error
	for _, dir := range inMemory() {
		for ; made < t.Most; made++ {
			fd, err := unix.Open(fmt.Sprint(dir, "/inode-", made), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
			if err != nil {
				last = err
				break
			}
			_ = unix.Close(fd)
		}
	}
	if made >= t.Most {
		return worked("made %d files in memory", made)
	}
	return denied(fmt.Sprintf("%d files, then", made), last)
}

// inMemory are the folders of file systems in memory that can be written to.
func inMemory() []string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil
	}
	var list []string
	for line := range bytes.Lines(mounts) {
		fields := bytes.Fields(line)
		if len(fields) < 3 || string(fields[2]) != "tmpfs" {
			continue
		}
		if dir := string(fields[1]); unix.Access(dir, unix.W_OK) == nil {
			list = append(list, dir)
		}
	}
	return list
}

// descriptorBomb duplicates a file until there are no more descriptors, after it has asked for more. That takes little else.
func descriptorBomb(t *Target) Verdict {
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(t.Most) + 64, Max: uint64(t.Most) + 64})
	for opened := range t.Most {
		if _, err := unix.Dup(0); err != nil {
			return denied(fmt.Sprintf("%d descriptors, then", opened), err)
		}
	}
	return worked("has %d descriptors", t.Most)
}

// logFlood prints as much as it may.
func logFlood(t *Target) Verdict {
	fmt.Println(Started)
	line := bytes.Repeat([]byte("flood"), 13)
	line[len(line)-1] = '\n'
	block := bytes.Repeat(line, 1000)
	for written := int64(0); written < t.Most; {
		n, err := os.Stdout.Write(block)
		written += int64(n)
		if err != nil {
			return denied(fmt.Sprintf("%d bytes, then", written), err)
		}
	}
	return Verdict{}
}
