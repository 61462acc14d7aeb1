package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const mark = 4 << 20 // a part is marked so often

// part opens a part, and checks that it holds so much.
func part(t testing.TB, s *disk.Store, ref digest.Ref, held uint64) *disk.Part {
	t.Helper()
	p, err := s.Part(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if p.Held() != held {
		t.Errorf("%d bytes are held, want %d", p.Held(), held)
	}
	return p
}

func write(t testing.TB, p *disk.Part, data []byte) {
	t.Helper()
	if n, err := p.Write(data); err != nil || n != len(data) {
		t.Fatalf("%d of %d bytes: %v", n, len(data), err)
	}
}

func closed(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// Case T45: cuts at any offset.
func TestAPartGoesOnWhereItStoppedAndBecomesTheObject(t *testing.T) {
	dir := castest.Folder(t)
	data := castest.Bytes(1, 11<<20)
	ref := digest.RefOf(data)
	at := 0
	for _, next := range []int{0, 1, 1000, mark - 1, mark, mark + 1, 9 << 20, 9<<20 + 7, len(data)} {
		s := openedAt(t, dir, disk.Options{})
		p := part(t, s, ref, uint64(at))
		write(t, p, data[at:next])
		at = next
		castest.Lacks(t, s, ref)
		closed(t, p)
		closed(t, s)
	}
	s := openedAt(t, dir, disk.Options{})
	p := part(t, s, ref, ref.Bytes)
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, p)
	castest.Holds(t, s, ref, data)
	if list, err := os.ReadDir(filepath.Join(dir, "parts")); err != nil || len(list) != 0 {
		t.Errorf("%d files of parts are left (%v)", len(list), err)
	}
	again := part(t, s, ref, ref.Bytes)
	if err := again.Commit(t.Context()); err != nil {
		t.Errorf("of an object that is there: %v", err)
	}
	closed(t, again)
}

func TestAPartThatIsAnotherObjectIsForgotten(t *testing.T) {
	s := opened(t, disk.Options{})
	data := castest.Bytes(1, 1000)
	ref := digest.RefOf(data)
	for name, other := range map[string][]byte{"flipped": flip(bytes.Clone(data)), "not all": data[:999], "nothing": nil} {
		p := part(t, s, ref, 0)
		write(t, p, other)
		var m *cas.MismatchError
		if err := p.Commit(t.Context()); !errors.As(err, &m) || m.Ref != ref {
			t.Errorf("%s: %v, want a MismatchError", name, err)
		}
		closed(t, p)
		castest.Lacks(t, s, ref)
	}
	p := part(t, s, ref, 0)
	var m *cas.MismatchError
	if n, err := p.Write(append(bytes.Clone(data), 0)); n != 0 || !errors.As(err, &m) {
		t.Errorf("one byte more: %d, %v, want a MismatchError and nothing taken", n, err)
	}
	write(t, p, data)
	if err := p.Commit(t.Context()); err != nil {
		t.Errorf("the right bytes after: %v", err)
	}
	closed(t, p)
}

// Claim 4.2: what was damaged while a part waited does not get into the object.
func TestAPartIsBelievedUpToItsLastGoodMark(t *testing.T) {
	data := castest.Bytes(1, 3*mark+1000)
	ref := digest.RefOf(data)
	name := strings.TrimPrefix(ref.Digest.String(), "b3:") + fmt.Sprintf(".%d", ref.Bytes)
	at := func(i int) func([]byte) []byte {
		return func(d []byte) []byte { d[i] ^= 1; return d }
	}
	cut := func(n int) func([]byte) []byte { return func(d []byte) []byte { return d[:n] } }
	for what, c := range map[string]struct {
		data, marks func([]byte) []byte
		held        uint64
	}{
		"nothing":                           {nil, nil, 3*mark + 500},
		"a bit behind the second mark":      {at(2*mark + 9), nil, 2 * mark},
		"the first bit":                     {at(0), nil, 0},
		"the end is lost":                   {cut(2*mark + 5), nil, 2 * mark},
		"everything is lost":                {cut(0), nil, 0},
		"more behind the end":               {func(d []byte) []byte { return append(d, 1, 2, 3) }, nil, 3*mark + 500},
		"a torn mark":                       {nil, cut(2*40 + 39), 2 * mark},
		"the marks are lost":                {nil, cut(0), 0},
		"a bit of the second mark's digest": {nil, at(40 + 20), mark},
		"a bit of the second mark's offset": {nil, at(40), mark},
	} {
		dir := castest.Folder(t)
		s := openedAt(t, dir, disk.Options{})
		p := part(t, s, ref, 0)
		write(t, p, data[:3*mark+500])
		closed(t, p)
		path := filepath.Join(dir, "parts", name)
		if c.data != nil {
			change(t, path, c.data)
		}
		if c.marks != nil {
			change(t, path+".marks", c.marks)
		}
		p, err := s.Part(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if p.Held() != c.held {
			t.Errorf("%s: %d bytes are believed, want %d", what, p.Held(), c.held)
		}
		write(t, p, data[p.Held():])
		if err := p.Commit(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		closed(t, p)
		castest.Holds(t, s, ref, data)
	}
}

// age lets a part look as if nobody had added to it for a week.
func age(t *testing.T, dir string, ref digest.Ref) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "parts", ref.Digest.String()[len("b3:"):]+"*"))
	if err != nil || len(found) != 2 { // its marks, too
		t.Fatal(found, err)
	}
	then := time.Now().Add(-7 * 24 * time.Hour)
	for _, path := range found {
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// arriving is how much has come of objects.
func arriving(t *testing.T, s *disk.Store) forge.Bytes {
	t.Helper()
	usage, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return usage.Parts
}

func TestPartsThatNobodyGoesOnWithAreGivenUp(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	var refs []digest.Ref
	for i := range 3 {
		data := castest.Bytes(uint64(i), 5<<20)
		refs = append(refs, digest.RefOf(data))
		p := part(t, s, refs[i], 0)
		write(t, p, data[:mark])
		closed(t, p)
	}
	forgotten, inUse, fresh := refs[0], refs[1], refs[2]
	held := part(t, s, inUse, mark)
	age(t, dir, forgotten)
	age(t, dir, inUse)
	before := arriving(t, s)
	count, size, err := s.DropParts(time.Now().Add(-time.Hour))
	if count != 1 || size != mark || err != nil {
		t.Errorf("%d parts with %d bytes were given up: %v", count, size, err)
	}
	if freed := before - arriving(t, s); freed != mark {
		t.Errorf("%d bytes are free that were not", freed)
	}
	closed(t, held)
	for ref, has := range map[digest.Ref]uint64{forgotten: 0, inUse: mark, fresh: mark} {
		closed(t, part(t, s, ref, has))
	}
}

func TestAPartThatIsHeldIsWaitedFor(t *testing.T) {
	s := opened(t, disk.Options{})
	data := castest.Bytes(1, 1000)
	ref := digest.RefOf(data)
	first := part(t, s, ref, 0)
	second := make(chan uint64)
	go func() {
		p, err := s.Part(t.Context(), ref)
		if err != nil {
			t.Error(err)
			close(second)
			return
		}
		second <- p.Held()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		close(second)
	}()
	write(t, first, data)
	select {
	case <-second:
		t.Error("two hold it")
	default:
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed(t, first)
	if held := <-second; held != 1000 {
		t.Errorf("the second holds %d bytes of an object that is there", held)
	}
	<-second
}

const helperDir = "FORGEYARD_TEST_CAS_WRITER"

// beKilled is the process that the next test kills: it stores objects and says which it has.
func beKilled(t *testing.T, dir string) {
	t.Helper()
	s := openedAt(t, dir, disk.Options{})
	data := castest.Bytes(1, 32<<20)
	p, err := s.Part(t.Context(), digest.RefOf(data))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("part %d\n", p.Held())
	for i := 0; p.Held() < uint64(len(data)); i++ {
		write(t, p, data[p.Held():min(p.Held()+1<<20, uint64(len(data)))])
		object := castest.Bytes(uint64(i), 1000*(i%400))
		fmt.Printf("part %d\nobject %v\n", p.Held(), put(t, s, object))
	}
	if err := errors.Join(p.Commit(t.Context()), p.Close()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("done")
}

// Cases T50, B06, T49: kill -9 at any moment loses at most 8 MiB of a large object and nothing that was said to be stored.
func TestAProcessThatIsKilledLosesNothingThatItSaidItHas(t *testing.T) {
	if dir := os.Getenv(helperDir); dir != "" {
		beKilled(t, dir)
		return
	}
	dir := castest.Folder(t)
	data := castest.Bytes(1, 32<<20)
	ref := digest.RefOf(data)
	var reached uint64
	for round := 1; ; round++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), helperDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		held, said, done := listen(t, out, 5*round, func() {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		})
		_ = cmd.Wait() // it was killed
		if held[0]+8<<20 < reached {
			t.Errorf("round %d: it had %d bytes of the large object and goes on from %d", round, reached, held[0])
		}
		reached = held[len(held)-1]
		s := openedAt(t, dir, disk.Options{})
		if missing, err := s.Missing(t.Context(), said); err != nil || len(missing) > 0 {
			t.Errorf("round %d: %d of %d objects are missing (%v)", round, len(missing), len(said), err)
		}
		if report, err := s.Verify(t.Context(), true, nil); err != nil || report.Findings > 0 {
			t.Errorf("round %d: %+v, %v", round, report, err)
		}
		if done {
			castest.Holds(t, s, ref, data)
			return
		}
		castest.Lacks(t, s, ref)
		closed(t, s)
	}
}

// listen hears what the writer says and kills it after so many objects; what it has said by then counts.
func listen(t *testing.T, out io.Reader, objects int, kill func()) (held []uint64, said []digest.Ref, done bool) {
	t.Helper()
	text, err := io.ReadAll(&killer{out, objects, kill})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[:len(lines)-1] { // the last may be cut
		var n uint64
		if _, err := fmt.Sscanf(line, "part %d", &n); err == nil {
			held = append(held, n)
		}
		if name, ok := strings.CutPrefix(line, "object "); ok {
			ref, err := digest.ParseRef(name)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, ref)
		}
		done = done || line == "done"
	}
	if len(held) == 0 {
		t.Fatalf("the writer said nothing of its part: %s", text)
	}
	return held, said, done
}

// killer calls kill once so many objects were named.
type killer struct {
	r    io.Reader
	left int
	kill func()
}

func (k *killer) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	before := k.left
	k.left -= bytes.Count(p[:n], []byte("object "))
	if before > 0 && k.left <= 0 {
		k.kill()
	}
	return n, err
}
