package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const bootFile = "/proc/sys/kernel/random/boot_id"

// NewRecord names a process that cannot end meanwhile: this one, or a child that was not waited for.
func NewRecord(pid int) (Record, error) {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return Record{}, err
	}
	start, err := startOf(pid)
	return Record{Boot: strings.TrimSpace(string(boot)), PID: pid, Start: start}, err
}

// unfinished is behind the name of a record that is being written.
const unfinished = ".new"

// WriteRecord makes the record the content of a file. It need not outlive the machine.
func (r Record) WriteRecord(path string) error {
	place, err := placeOf(filepath.Dir(path))
	if err != nil {
		return err
	}
	r.Place = place
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+unfinished, path)
}

// Fill makes the record the content of an open file.
func (r Record) Fill(f *os.File) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return err
}

// placeOf tells a folder from its copies on the same machine.
func placeOf(folder string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: folder, Err: err}
	}
	return fmt.Sprintf("%d-%d", st.Dev, st.Ino), nil
}

// readRecord reads a record. A file that was cut off is none.
func readRecord(path string) (Record, bool) {
	text, err := os.ReadFile(path)
	var r Record
	return r, err == nil && json.Unmarshal(text, &r) == nil && r.PID > 1
}

// hold returns a descriptor of the process that r names, or ESRCH. No later process can take its place. The caller closes it.
func (r Record) hold() (int, error) {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return -1, err
	}
	if strings.TrimSpace(string(boot)) != r.Boot {
		return -1, unix.ESRCH
	}
	fd, err := unix.PidfdOpen(r.PID, 0)
	if err != nil {
		return -1, err
	}
	// A zombie is as good as any: while its other threads end, a process looks like one.
	if start, err := startOf(r.PID); err != nil || start != r.Start {
		return -1, errors.Join(unix.ESRCH, unix.Close(fd))
	}
	return fd, nil
}

// startOf reads when a process was started.
func startOf(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name in the second field may hold anything; the last parenthesis ends it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("process %d: its status has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
