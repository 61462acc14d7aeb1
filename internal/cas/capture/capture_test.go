package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestDeclaredOutputsAndNothingElseAreKept(t *testing.T) {
	j := newJob(t, "dist", "**/*.xml", "!dist/cache")
	j.write("dist/app", "dist/cache/x", "secret", "a/b/report.xml", "a/b/report.txt", "distant")
	must(t, os.MkdirAll(filepath.Join(j.source, "dist", "empty", "too"), 0o700))
	must(t, os.MkdirAll(filepath.Join(j.source, "void"), 0o700))
	r := j.want(`a/b/report.xml "a/b/report.xml"`, `dist/app "dist/app"`, "dist/empty/too/")
	if r.Tree.Files != 3 || r.Tree.Bytes != 22 || r.Tree.Depth != 3 || len(r.Warnings) != 0 {
		t.Errorf("it says %+v", r)
	}
	if j.sink.added != 2 {
		t.Errorf("%d files were read", j.sink.added)
	}
}

func TestOneFileIsATreeToo(t *testing.T) {
	j := newJob(t, "app")
	j.write("app", "else")
	j.want(`app "app"`)
}

func TestAnOutputCanHaveAnotherBase(t *testing.T) {
	j := newJob(t, "*.o")
	j.out.Base = "build/deep"
	must(t, os.MkdirAll(filepath.Join(j.work, "build", "deep"), 0o700))
	must(t, os.WriteFile(filepath.Join(j.work, "build", "deep", "x.o"), []byte("o"), 0o600))
	j.write("y.o")
	j.want(`x.o "o"`)
	j.out.Patterns = []string{"/work/build/deep/x.o"}
	j.want(`x.o "o"`)
}

// Case B80, and B80 again where nothing at all is there.
func TestAPatternWithoutMatchIsAWarningAndTheOthersAreKept(t *testing.T) {
	for _, required := range []bool{false, true} {
		j := newJob(t, "dist/a", "reports/**", "dist")
		j.out.Required = required
		j.write("dist/a", "dist/b")
		r := j.want(`dist/a "dist/a"`, `dist/b "dist/b"`)
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], `"reports/**"`) {
			t.Errorf("required %v: warnings %q", required, r.Warnings)
		}
	}
}

// Case B80.
func TestARequiredOutputWithoutAFileIsMissing(t *testing.T) {
	for what, leave := range map[string]func(j *job){
		"nothing":         func(*job) {},
		"no base":         func(j *job) { must(t, os.Remove(j.source)) },
		"a file for base": func(j *job) { must(t, errors.Join(os.Remove(j.source), os.WriteFile(j.source, nil, 0o600))) },
		"an empty folder": func(j *job) { must(t, os.Mkdir(filepath.Join(j.source, "dist"), 0o700)) },
	} {
		j := newJob(t, "dist/**", "*.log")
		leave(j)
		r, err := j.take()
		if err != nil || what != "an empty folder" && (len(r.Warnings) != 1 || !r.Tree.Root.IsZero()) {
			t.Errorf("%s, optional: %+v, %v", what, r, err)
		}
		j.out.Required = true
		j.refused(forge.OutputMissing, `"dist/**", "*.log"`, "/work/source")
	}
}

// Case B78.
func TestTheExecutableBitIsKeptAndNoOtherMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	j := newJob(t, "**")
	for name, mode := range map[string]os.FileMode{
		"0755": 0o755, "0644": 0o644, "0600": 0o600, "0601": 0o601, "0410": 0o410, "0400": 0o400, "setuid": 0o755 | os.ModeSetuid, "sticky": 0o666 | os.ModeSticky,
	} {
		j.write(name)
		must(t, os.Chmod(filepath.Join(j.source, name), mode))
	}
	j.want(`0400 "0400"`, `0410 "0410" x`, `0600 "0600"`, `0601 "0601" x`, `0644 "0644"`, `0755 "0755" x`, `setuid "setuid" x`, `sticky "sticky"`)
}

// Case B77.
func TestLinksThatStayInsideAreKeptAsLinks(t *testing.T) {
	j := newJob(t, "**")
	j.write("a/file", "b/c/file")
	for name, target := range map[string]string{
		"a/rel": "file", "a/up": "../b/c/file", "a/folder": "../b", "a/dangling": "../nothing/there", "a/self": "self", "a/loop": "../b/loop",
		"b/loop": "../a/loop", "a/dot": ".", "a/base": "..", "b/c/odd": ".././../a//file", "a/not taken": "new\nline",
	} {
		j.link(target, name)
	}
	j.want("a/base -> ..", "a/dangling -> ../nothing/there", "a/dot -> .", `a/file "a/file"`, "a/folder -> ../b", "a/loop -> ../b/loop",
		"a/not taken -> new\nline", "a/rel -> file", "a/self -> self", "a/up -> ../b/c/file", `b/c/file "b/c/file"`, "b/c/odd -> .././../a//file", "b/loop -> ../a/loop")
}

// Cases B77 and B83.
func TestLinksThatLeaveTheBaseAreRefusedByName(t *testing.T) {
	for target, why := range map[string]string{
		"/etc/passwd": "absolute", "/work/source/dist/x": "absolute", "../../etc/passwd": "outside", "../..": "outside", "./../../x": "outside",
		"a/../../../x": "behind a name", "a/../b": "behind a name", "\xff": "UTF-8",
	} {
		j := newJob(t, "dist")
		j.write("dist/ok", "elsewhere/x")
		j.link(target, "dist/bad")
		j.link("/etc/passwd", "elsewhere/bad") // which nothing takes
		e := j.refused(forge.OutputRefused, `"dist/bad"`, why)
		if len(e.Paths) != 1 || e.Paths[0] != "dist/bad" {
			t.Errorf("paths %q", e.Paths)
		}
	}
}

// A link that is fine by itself may make another one lead out.
func TestALinkCannotClimbThroughAnother(t *testing.T) {
	j := newJob(t, "**")
	j.link("../..", "d/e/base")
	j.link("d/e/base/../../etc/passwd", "out") // looks like d/etc/passwd
	j.refused(forge.OutputRefused, `"out"`, "behind a name")
}

// Case B83: a base that is a link leads nowhere.
func TestABaseThatIsALinkIsRefused(t *testing.T) {
	for _, base := range []string{forge.SourceDir, "source/below"} {
		j := newJob(t, "**")
		j.out.Base = base
		outside := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(outside, "below"), 0o700))
		must(t, os.WriteFile(filepath.Join(outside, "below", "precious"), nil, 0o600))
		must(t, os.Remove(j.source))
		must(t, os.Symlink(outside, j.source))
		j.refused(forge.OutputRefused, "link")
	}
	j := newJob(t, "**") // also one that stays inside
	must(t, os.Remove(j.source))
	must(t, os.Symlink("elsewhere", j.source))
	must(t, os.Mkdir(filepath.Join(j.work, "elsewhere"), 0o700))
	j.refused(forge.OutputRefused, "link")
}

// Case B83, 07§81.
func TestSizesAreKnownBeforeAnythingIsRead(t *testing.T) {
	j := newJob(t, "dist")
	j.write("dist/ok")
	sparse, err := os.Create(filepath.Join(j.source, "dist", "sparse"))
	must(t, err)
	must(t, errors.Join(sparse.Truncate(1<<40), sparse.Close()))
	e := j.refused(forge.OutputTooLarge, `"dist/sparse"`, "1 MiB")
	if len(e.Paths) != 1 || e.Paths[0] != "dist/sparse" {
		t.Errorf("paths %q", e.Paths)
	}
}

func TestEachLimitIsKeptToTheLastUnit(t *testing.T) {
	j := newJob(t, "dist")
	j.write("dist/a", "dist/b", "dist/c/d")
	j.link("a", "dist/l")
	must(t, os.Mkdir(filepath.Join(j.source, "dist", "e"), 0o700))
	all := []string{`dist/a "dist/a"`, `dist/b "dist/b"`, `dist/c/d "dist/c/d"`, "dist/e/", "dist/l -> a"}
	for what, set := range map[string]func(by int){
		"bytes":   func(by int) { j.out.MaxBytes = forge.Bytes(20 + by) },
		"files":   func(by int) { j.out.MaxFiles = uint32(5 + by) }, // an empty folder is one
		"entries": func(by int) { j.limits.Entries = uint64(7 + by) },
		"folders": func(by int) { j.limits.Folders = uint64(3 + by) },
	} {
		j.out.MaxBytes, j.out.MaxFiles, j.limits.Entries, j.limits.Folders = forge.MiB, 1000, 0, 0
		set(0)
		j.want(all...)
		set(-1)
		if e := j.refused(forge.OutputTooLarge); what == "" || e.Err == nil {
			t.Error(what)
		}
	}
}

func TestWhatNoPatternReachesIsNotLookedAt(t *testing.T) {
	j := newJob(t, "dist", "!dist/cache", "reports/*.xml")
	for i := range 50 {
		j.write(fmt.Sprintf("node_modules/%d", i), fmt.Sprintf("dist/cache/%d", i), fmt.Sprintf("reports/deep/%d", i))
	}
	j.write("dist/a", "reports/b.xml")
	j.limits.Entries = 7 // three folders, two things in each of two
	j.want(`dist/a "dist/a"`, `reports/b.xml "reports/b.xml"`)
}

func TestATreeMayBeAsDeepAsTreesMayBe(t *testing.T) {
	j := newJob(t, "**")
	root, err := os.OpenRoot(j.source)
	must(t, err)
	for range forge.MaxTreeDepth - 1 {
		must(t, root.Mkdir("d", 0o700))
		next, err := root.OpenRoot("d")
		must(t, errors.Join(err, root.Close()))
		root = next
	}
	must(t, root.WriteFile("f", []byte("x"), 0o600))
	r, err := j.take()
	must(t, err)
	if r.Tree.Depth != forge.MaxTreeDepth {
		t.Errorf("depth %d", r.Tree.Depth)
	}
	must(t, root.Mkdir("d", 0o700))
	sub, err := root.OpenRoot("d")
	must(t, err)
	must(t, errors.Join(sub.WriteFile("f", nil, 0o600), sub.Close(), root.Close()))
	j.refused(forge.OutputTooLarge, "1024 folders")
	j.out.Patterns = []string{"d/d/x"} // which reaches nothing so deep
	j.write("d/d/x")
	j.want(`d/d/x "d/d/x"`)
}

func TestAStoreThatFailsIsNobodysOutput(t *testing.T) {
	j := newJob(t, "**")
	j.write("a", "b", "c/d")
	full := errors.New("the disk is full")
	j.sink.before = func(context.Context, io.Reader) error { return full }
	if e := j.refused(forge.UploadFailed, "the disk is full"); !errors.Is(e, full) {
		t.Error("the cause is lost")
	}
}

func TestACaptureEndsWithItsContext(t *testing.T) {
	j := newJob(t, "**")
	j.write("a", "b")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the attempt is over")
	j.sink.before = func(context.Context, io.Reader) error { cancel(gone); return nil }
	root, err := os.OpenRoot(j.work)
	must(t, err)
	defer func() { must(t, root.Close()) }()
	if _, err := capture.Take(ctx, root, j.out, &j.sink, j.limits); !errors.Is(err, gone) {
		t.Errorf("it ends with %v", err)
	}
}

func TestFoldersOfTheSameFilesHaveTheSameName(t *testing.T) {
	var refs [2]digest.Ref
	for i := range refs {
		j := newJob(t, "**")
		j.write([][]string{{"a", "b/c", "b/d"}, {"b/d", "b/c", "a"}}[i]...)
		r, err := j.take()
		must(t, err)
		refs[i] = r.Tree.Root
	}
	if refs[0] != refs[1] {
		t.Errorf("%v and %v", refs[0], refs[1])
	}
}
