package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func open(t *testing.T, name string, maxBytes int64, keep int) *telemetry.File {
	t.Helper()
	f, err := telemetry.OpenFile(name, maxBytes, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// sizes returns the size of each file in a folder.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = info.Size()
	}
	return all
}

// Case B59.
func TestALogFileNeverTakesMoreThanItsShare(t *testing.T) {
	dir := t.TempDir()
	const limit, keep = telemetry.MinFileBytes, 2
	f := open(t, filepath.Join(dir, "agent.log"), limit, keep)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 500 {
				fmt.Fprintf(f, "writer %d record %d %s\n", w, i, strings.Repeat("x", i%200))
			}
		})
	}
	writers.Wait()
	all := sizes(t, dir)
	if len(all) != keep+1 {
		t.Errorf("%d files, want %d: %v", len(all), keep+1, all)
	}
	for name, size := range all {
		if size > limit {
			t.Errorf("%s has %d bytes, more than %d", name, size, limit)
		}
		if data, _ := os.ReadFile(filepath.Join(dir, name)); !bytes.HasSuffix(data, []byte("\n")) {
			t.Errorf("%s ends within a record", name)
		}
	}
}

func TestTheNewestRecordsStay(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "agent.log")
	f := open(t, name, telemetry.MinFileBytes, 1)
	record := strings.Repeat("r", telemetry.MinFileBytes/2-8)
	for i := range 5 {
		fmt.Fprintf(f, "%d %s\n", i, record)
	}
	for file, want := range map[string]string{name: "4 ", name + ".1": "2 "} {
		if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), want) {
			t.Errorf("%s begins with %.4q (%v), want %q", file, data, err, want)
		}
	}
}

func TestARecordLongerThanAFileIsCut(t *testing.T) {
	dir := t.TempDir()
	f := open(t, filepath.Join(dir, "agent.log"), telemetry.MinFileBytes, 0)
	for range 3 {
		if _, err := f.Write(bytes.Repeat([]byte("x"), telemetry.MinFileBytes+1)); err != nil {
			t.Fatal(err)
		}
	}
	if all := sizes(t, dir); len(all) != 1 || all["agent.log"] != telemetry.MinFileBytes {
		t.Errorf("files are %v", all)
	}
}

func TestAnOpenedLogFileGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "deep", "agent.log")
	for i := range 2 {
		f := open(t, name, telemetry.MinFileBytes, 1)
		fmt.Fprintf(f, "start %d\n", i)
	}
	if data, _ := os.ReadFile(name); string(data) != "start 0\nstart 1\n" {
		t.Errorf("the file holds %q", data)
	}
}

func TestOldFilesPastTheNumberToKeepAreRemoved(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "agent.log")
	for _, old := range []string{".1", ".2", ".7"} {
		if err := os.WriteFile(name+old, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, name, telemetry.MinFileBytes, 1)
	if all := sizes(t, dir); len(all) != 2 || all["agent.log.1"] != 3 {
		t.Errorf("files are %v", all)
	}
}

// A folder that stands where an old file should go keeps the file from being moved. The bound holds all the same.
func TestAFileThatCannotBeMovedIsEmptied(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "agent.log")
	if err := os.MkdirAll(filepath.Join(name+".1", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, name, telemetry.MinFileBytes, 1)
	for range 3 * telemetry.MinFileBytes / 64 {
		fmt.Fprintf(f, "%63s\n", "x")
	}
	if size := sizes(t, dir)["agent.log"]; size > telemetry.MinFileBytes {
		t.Errorf("the file has %d bytes", size)
	}
}

func TestAClosedLogFileTakesNothing(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "agent.log"), telemetry.MinFileBytes, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("err = %v", err)
	}
}

func TestBoundsOfALogFileAreChecked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "agent.log")
	for _, bad := range []struct {
		max  int64
		keep int
	}{{telemetry.MinFileBytes - 1, 1}, {telemetry.MinFileBytes, -1}, {telemetry.MinFileBytes, telemetry.MaxFilesKept + 1}} {
		if _, err := telemetry.OpenFile(name, bad.max, bad.keep); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
