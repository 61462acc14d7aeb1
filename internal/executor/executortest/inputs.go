package executortest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

var inputs = []testCase{
	{name: "an input may be written, and its tree stays as it is", run: copyOnWrite},
	{name: "an input that is read-only, too", run: readOnly},
	{name: "several inputs stand in one view", run: severalInputs},
	{name: "modes, links and odd names come through", run: evilInput},
	{name: "what a job leaves is read after its end", run: leftFiles},
	{name: "what a killed job leaves, too", run: killedFiles},
	{name: "nothing outside is read through what a job leaves", run: wayOut},
	{name: "a job that writes more than it may is ended for that", run: diskFull, supervised: true},
	{name: "a file without a name counts too", run: diskHidden, supervised: true},
}

// tree makes a folder as a cache of trees has it: contents by path, a link where it begins with "->", a program where the
// path ends with a star.
func (b *bench) tree(files map[string]string) string {
	b.Helper()
	dir := b.TempDir()
	b.must(os.Chmod(dir, 0o755))
	for at, content := range files {
		name, program := strings.CutSuffix(at, "*")
		to := filepath.Join(dir, filepath.FromSlash(name))
		b.must(os.MkdirAll(filepath.Dir(to), 0o755))
		target, link := strings.CutPrefix(content, "->")
		switch {
		case link:
			b.must(os.Symlink(target, to))
		case program:
			b.must(os.WriteFile(to, []byte(content), 0o755))
		default:
			b.must(os.WriteFile(to, []byte(content), 0o644))
		}
	}
	return dir
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// look lists what is in a folder, with modes and contents.
func (b *bench) look(dir string) string {
	b.Helper()
	var all strings.Builder
	b.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if d.Type().IsRegular() {
			content, err = os.ReadFile(path)
		}
		_, _ = fmt.Fprintf(&all, "%s %v %v %q\n", path, info.Mode(), info.ModTime(), content)
		return err
	}))
	return all.String()
}

func (b *bench) input(mount string, mode forge.InputMode, files map[string]string) string {
	b.Helper()
	dir := b.tree(files)
	b.order.Inputs = append(b.order.Inputs, executor.Input{Mount: mount, Tree: dir, Mode: mode})
	return dir
}

// left reads files that a job has left, once it has ended.
func (b *bench) left(w executor.Workload, want map[string]string) {
	b.Helper()
	root, err := w.Files()
	b.must(err)
	defer func() { b.must(root.Close()) }()
	for name, content := range want {
		if got, err := root.ReadFile(name); err != nil || string(got) != content {
			b.Errorf("%s holds %q, %v; want %q", name, got, err, content)
		}
	}
}

var sources = map[string]string{"README": "read me\n", "src/main.c": "int main;\n", "src/old/x": "x\n", "run*": "#!/bin/sh\necho it runs\n"}

func copyOnWrite(b *bench) {
	dir := b.input("source", forge.InputCopyOnWrite, sources)
	before := b.look(dir)
	w := b.start(script(`set -e
		./run; cat README; echo more >>README; rm -r src/old; mkdir src/old; echo y >src/old/y; chmod 600 run; rm src/main.c
		echo z >src/new; ls src/old; test ! -e src/main.c`))
	b.want(b.outcome(w).Result, forge.Succeeded, 0, 0)
	b.stdout("it runs\nread me\ny\n")
	b.left(w, map[string]string{"source/README": "read me\nmore\n", "source/src/old/y": "y\n", "source/src/new": "z\n"})
	if after := b.look(dir); after != before {
		b.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
}

func readOnly(b *bench) {
	dir := b.input("source", forge.InputReadOnly, sources)
	before := b.look(dir)
	b.run(script(`./run; (echo more >README) 2>/dev/null && echo written; mkdir new 2>/dev/null && echo made; rm -f README 2>/dev/null && echo removed; true`))
	if b.options.Confined {
		b.stdout("it runs\n")
	}
	if after := b.look(dir); after != before {
		b.Errorf("the tree was\n%s\nand is\n%s", before, after)
	}
}

func severalInputs(b *bench) {
	b.input("source", forge.InputCopyOnWrite, sources)
	b.input("vendor/one", forge.InputReadOnly, map[string]string{"a": "one\n"})
	b.input("vendor/two", forge.InputCopyOnWrite, map[string]string{"a": "two\n"})
	b.input("home/.config/tool", forge.InputCopyOnWrite, map[string]string{"rc": "set\n"})
	w := b.start(script(`set -e; cat README ../vendor/one/a ../vendor/two/a $HOME/.config/tool/rc
		echo 2 >../vendor/two/a; echo 3 >../vendor/three; echo 4 >$HOME/.config/other; ls ../vendor`))
	b.want(b.outcome(w).Result, forge.Succeeded, 0, 0)
	b.stdout("read me\none\ntwo\nset\none\nthree\ntwo\n")
	b.left(w, map[string]string{"vendor/two/a": "2\n", "vendor/three": "3\n", "vendor/one/a": "one\n", "home/.config/other": "4\n"})
}

// Case B78.
func evilInput(b *bench) {
	b.input("source", forge.InputCopyOnWrite, map[string]string{
		"bin/tool*": "#!/bin/sh\necho tool\n", "plain": "plain\n", "bin/alias": "->tool", "up": "->bin/../plain", "nowhere": "->missing",
		"-rf": "dash\n", "two words": "space\n", "new\nline": "line\n",
	})
	b.run(script(`test -x bin/tool && test ! -x plain && bin/alias && cat up ./-rf 'two words' "$(printf 'new\nline')" && readlink nowhere`))
	b.stdout("tool\nplain\ndash\nspace\nline\nmissing\n")
}

func leftFiles(b *bench) {
	w := b.start(script("mkdir out; echo kept >out/file; echo home >$HOME/file; exit 3"))
	b.want(b.outcome(w).Result, forge.ExitCode, 3, 0)
	b.left(w, map[string]string{"source/out/file": "kept\n", "home/file": "home\n"})
	b.left(w, map[string]string{"source/out/file": "kept\n"}) // again
}

func killedFiles(b *bench) {
	b.input("source", forge.InputCopyOnWrite, sources)
	w := b.start(script("echo changed >README; echo ready; sleep 999"))
	b.sink.Await("ready")
	w.Kill()
	b.outcome(w)
	b.left(w, map[string]string{"source/README": "changed\n", "source/src/main.c": "int main;\n"})
}

func wayOut(b *bench) {
	b.input("source", forge.InputCopyOnWrite, sources)
	w := b.start(script("ln -s /etc abs; ln -s ../../../../../../../../etc rel; ln -s abs two; rm -r src; ln -s /etc src"))
	b.want(b.outcome(w).Result, forge.Succeeded, 0, 0)
	root, err := w.Files()
	b.must(err)
	defer func() { b.must(root.Close()) }()
	for _, name := range []string{"source/abs/passwd", "source/rel/passwd", "source/two/passwd", "source/src/passwd"} {
		if data, err := root.ReadFile(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			b.Errorf("%s holds %q, %v", name, data, err)
		}
	}
}

// Case B87. What the input takes is not the job's. Who is told by the system that the disk is full fails by itself; who is not
// is ended.
func diskFull(b *bench) {
	b.input("source", forge.InputCopyOnWrite, map[string]string{"large": strings.Repeat("x", 12<<20)})
	b.order.Spec.Resources.Disk = 8 * forge.MiB
	w := b.start(script("echo within >small; dd if=/dev/zero of=big bs=1048576 count=64 2>/dev/null || exit 7; echo written; sleep 999"), script("echo never"))
	o := b.outcome(w)
	b.want(o.Result, forge.DiskFull, 0, 0)
	if o.Result.Limit != uint64(8*forge.MiB) || o.Result.Peak < o.Result.Limit || o.Result.Peak > 70<<20 {
		b.Errorf("limit %d, peak %d", o.Result.Limit, o.Result.Peak)
	}
	said := false
	for _, e := range b.sink.Events() {
		n, ok := e.(forge.Notice)
		said = said || ok && strings.Contains(n.Text, "8 MiB") && strings.Contains(n.Text, "disk")
	}
	if !said {
		b.Errorf("nothing in the log says so: %v", b.sink.Events())
	}
	b.left(w, map[string]string{"source/small": "within\n"})
}

func diskHidden(b *bench) {
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); os.Geteuid() != 0 && bytes.Contains(mounts, []byte("hidepid=ptraceable")) {
		b.Skip("/proc does not show who guards its memory, nor what it has started")
	}
	b.input("source", forge.InputCopyOnWrite, sources)
	b.order.Spec.Resources.Disk = 8 * forge.MiB
	w := b.start(script("(exec 3>hidden; rm hidden; dd if=/dev/zero bs=1048576 count=32 >&3 2>/dev/null || >full; sleep 999) & " +
		"until [ -e full ]; do sleep 0.1; done; exit 7"))
	o := b.outcome(w)
	b.want(o.Result, forge.DiskFull, 0, 0)
	if o.Result.Peak < o.Result.Limit {
		b.Errorf("limit %d, peak %d", o.Result.Limit, o.Result.Peak)
	}
}
