package native_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

const ownDisk = 32 * forge.MiB

// withDisks opens an executor whose attempts have disks of their own, or skips.
func withDisks(t *testing.T) *native.Executor {
	t.Helper()
	e := openExecutor(t, native.Config{DiskImages: true})
	if report := e.Report(); !report.Has(sandbox.LevelDiskImage) {
		t.Skip(report.Sorry(sandbox.LevelDiskImage))
	}
	return e
}

func newDiskJob(t *testing.T, scripts ...string) *job {
	t.Helper()
	j := newJob(t, scripts...)
	j.order.Spec.Resources.Disk = ownDisk
	j.order.Spec.Sandbox.Levels = []string{string(sandbox.LevelDiskImage)}
	return j
}

// Case B87.
func TestAStepThatFailsOnItsFullDiskIsNamedForThat(t *testing.T) {
	e := withDisks(t)
	for name, script := range map[string]string{
		"its bytes":                  "head -c 64M /dev/zero >big",
		"the bytes of its temp":      "head -c 64M /dev/zero >$TMPDIR/big",
		"its names":                  "i=0; while >f$i; do i=$((i+1)); done; exit 3",
		"and dies of it":             "head -c 64M /dev/zero >big || kill -9 $$",
		"and what is left held open": "(exec 3>hidden; rm hidden; head -c 64M /dev/zero >&3 || >full; sleep 999) & until [ -e full ]; do sleep 0.1; done; exit 7",
	} {
		t.Run(name, func(t *testing.T) {
			j := newDiskJob(t, script)
			j.withInput(forge.InputCopyOnWrite)
			o := j.run(e)
			if o.Result.Class != forge.DiskFull || o.Result.Limit != uint64(ownDisk) || o.Result.Peak != uint64(ownDisk) {
				t.Errorf("%+v\n%s", o.Result, j.sink.Text(forge.LogStderr))
			}
			if !strings.Contains(j.notices(), "32 MiB. Ask for more with resources: disk.") {
				t.Error(j.notices())
			}
		})
	}
}

func TestAStepThatFailsWithRoomOnItsDiskIsNamedForItsExit(t *testing.T) { // the control of the above
	e := withDisks(t)
	j := newDiskJob(t, "head -c 16M /dev/zero >big; exit 3")
	if o := j.run(e); o.Result.Class != forge.ExitCode || o.Result.ExitCode != 3 || j.notices() != "" {
		t.Errorf("%+v\n%s", o.Result, j.notices())
	}
}

func TestAStepThatGoesOnWithAFullDiskIsToldSo(t *testing.T) {
	e := withDisks(t)
	j := newDiskJob(t, "head -c 64M /dev/zero >big || true", "rm big; exit 4")
	o := j.run(e)
	if len(o.Result.Steps) != 2 || o.Result.Steps[0].Class != forge.Succeeded || o.Result.Steps[1].Class == forge.Succeeded {
		t.Fatalf("%+v", o.Result)
	}
	if !strings.Contains(j.notices(), "is full: it holds 32 MiB. The step has gone on") {
		t.Error(j.notices())
	}
}

// 07§217: an output of a job with a disk of its own is, byte for byte, what it wrote.
func TestOutputsAreTakenFromADiskOfItsOwn(t *testing.T) {
	e := withDisks(t)
	j := newDiskJob(t, `python3 -c 'import random; random.seed(9); open("big", "wb").write(random.randbytes(20000000))'
		sha256sum <big; cp /bin/sh tool; ln -s big link`)
	w := j.start(e)
	if o := j.end(w); o.Result.Class != forge.Succeeded {
		t.Fatalf("%+v\n%s", o.Result, j.sink.Text(forge.LogStderr))
	}
	root, err := w.Files()
	must(t, err)
	var sink taken
	out := forge.Output{Name: "big", Base: forge.SourceDir, Patterns: []string{"big", "tool", "link"}, Required: true, MaxBytes: forge.GiB, MaxFiles: 9}
	_, err = capture.Take(t.Context(), root, out, &sink, capture.Limits{})
	must(t, err)
	data, err := root.ReadFile("source/big")
	must(t, err)
	if got := fmt.Sprintf("%x  -\n", sha256.Sum256(data)); got != j.sink.Text(forge.LogStdout) || !strings.Contains(sink.text.String(), string(data)) {
		t.Errorf("it is read with the sum %s and was written with %s", got, j.sink.Text(forge.LogStdout))
	}
	must(t, root.Close())
	must(t, w.Close())
	if _, err := os.Lstat(filepath.Join(j.order.Folder, "source/big")); !os.IsNotExist(err) {
		t.Errorf("the machine's folder has it too: %v", err)
	}
}

func TestAJobCannotInsistOnADiskWhereThereIsNone(t *testing.T) {
	e := openExecutor(t, native.Config{})
	j := newDiskJob(t, "true")
	if _, err := e.Prepare(t.Context(), j.order); err == nil || !strings.Contains(err.Error(), "sandbox.disk_images") {
		t.Errorf("%v", err)
	}
}
