package executortest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

var output = []testCase{
	{name: "every byte comes as it was written", run: exactBytes},
	{name: "streams can be opened by their names in /dev", run: namedStreams},
	{name: "a large output comes whole, on both streams", run: largeOutput},
	{name: "a flood is held back by its reader, within bounded memory", run: flood},
	{name: "all of an output stands before the end of its step", run: outputBeforeEnd},
}

// Case B52.
func exactBytes(b *bench) {
	b.run(script(`printf 'a\000b\377\376\r\n\n no newline at the end'; printf 'to errors' >&2`))
	b.stdout("a\x00b\xff\xfe\r\n\n no newline at the end")
	if got := b.sink.Text(forge.LogStderr); got != "to errors" {
		b.Errorf("errors %q", got)
	}
}

// namedStreams is how many scripts print errors. Opening asks for rights, which a descriptor that was handed down does not.
func namedStreams(b *bench) {
	if runtime.GOOS == "windows" {
		return // it has no such names
	}
	b.run(script("echo out >/dev/stdout; echo errors >/dev/stderr"))
	b.stdout("out\n")
	if got := b.sink.Text(forge.LogStderr); got != "errors\n" {
		b.Errorf("errors %q", got)
	}
}

// Case B52.
func largeOutput(b *bench) {
	b.run(script(`head -c 8000000 /dev/urandom | tee random; head -c 3000000 random >&2`))
	random := b.readFile("source/random")
	if got := b.sink.Text(forge.LogStdout); sha256.Sum256([]byte(got)) != sha256.Sum256([]byte(random)) {
		b.Errorf("%d bytes came, %d were written", len(got), len(random))
	}
	if got := b.sink.Text(forge.LogStderr); got != random[:3000000] {
		b.Errorf("%d bytes of errors came", len(got))
	}
}

func flood(b *bench) {
	b.sink.Drop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := b.start(script("yes & while :; do echo x >>alive; sleep 0.01; done"))
	b.sink.AwaitCount(64 << 20)
	b.sink.Hold(true)
	held := b.sink.Count(forge.LogStdout)
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		b.Errorf("the heap grew by %d bytes", grown)
	}
	path := filepath.Join(b.order.Folder, forge.SourceDir, "alive")
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for was := size(); size() < was+20; { // the workload lives on while nobody reads
		runtime.Gosched()
	}
	if got := b.sink.Count(forge.LogStdout); got != held {
		b.Errorf("%d bytes came while the output was held", got-held)
	}
	w.Kill()
	b.sink.Hold(false)
	b.want(b.outcome(w).Result, forge.Signal, 0, 9)
}

// Case B49.
func outputBeforeEnd(b *bench) {
	o := b.run(script("seq 1 20000"), script("echo second"))
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&want, i+1)
	}
	story := b.sink.Story()
	if diff := cmp.Diff([]any{
		forge.StepStarted{Step: 0},
		want.String(),
		forge.StepFinished{Result: o.Result.Steps[0]},
		forge.StepStarted{Step: 1},
		"second\n",
		forge.StepFinished{Result: o.Result.Steps[1]},
	}, story[len(story)-6:]); diff != "" {
		b.Error(diff)
	}
}
