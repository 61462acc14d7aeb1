package image_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
)

// maker skips where images cannot be made. What a test makes is attached nowhere and gone with it.
func maker(t *testing.T) (*image.Maker, *os.File) {
	t.Helper()
	if _, err := image.Program(); err != nil {
		t.Skip(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip(err)
	}
	in, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return &image.Maker{Start: (*exec.Cmd).Start}, in
}

func room(t *testing.T, i *image.Image) (bytes forge.Bytes, names uint64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(i.Watch.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	return forge.Bytes(s.Bavail) * forge.Bytes(s.Bsize), s.Ffree
}

func TestAnImageHoldsItsLimitAndHardlyMore(t *testing.T) {
	m, in := maker(t)
	for _, limit := range []forge.Bytes{
		image.MinLimit, 8 * forge.MiB, 100 * forge.MiB, 255*forge.MiB + 1, 256 * forge.MiB, 777_777_777, forge.GiB, 10 * forge.GiB, 77 * forge.GiB, image.MaxLimit,
	} {
		for range 2 { // the second is a copy of the same template
			i, err := m.Make(in, limit)
			if err != nil {
				t.Fatal(err)
			}
			bytes, names := room(t, i)
			if bytes < limit+128*forge.KiB || bytes > limit+512*forge.KiB {
				t.Errorf("%v: it has room for %v", limit, bytes)
			}
			if most := uint64(limit / 4096); names < min(most, 1<<24)*9/10 {
				t.Errorf("%v: it has room for %d names", limit, names)
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, limit := range []forge.Bytes{0, image.MinLimit - 1, image.MaxLimit + 1} {
		if i, err := m.Make(in, limit); err == nil {
			t.Errorf("%v: there is one", limit)
			_ = i.Close()
		}
	}
}

// Whatever the limit is: mkfs rounds in several ways.
func TestThereIsAnImageForEveryLimit(t *testing.T) {
	m, in := maker(t)
	random := rand.New(rand.NewPCG(1, 2))
	limits := []forge.Bytes{21_935_011_547, 24_082_495_195}
	for range 12 {
		limits = append(limits, image.MinLimit+forge.Bytes(random.Uint64N(uint64(forge.GiB))), forge.GiB+forge.Bytes(random.Uint64N(uint64(100*forge.GiB))))
	}
	for _, limit := range limits {
		i, err := m.Make(in, limit)
		if err != nil {
			t.Error(err)
			continue
		}
		if bytes, _ := room(t, i); bytes < limit+128*forge.KiB || bytes > limit+512*forge.KiB {
			t.Errorf("%v: it has room for %v", limit, bytes)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnImageIsEmptyAndTakesNothingOfTheDiskForWhatIsNotWritten(t *testing.T) {
	m, in := maker(t)
	i, err := m.Make(in, 10*forge.GiB)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close() }()
	if names, err := filepath.Glob(fmt.Sprintf("/proc/self/fd/%d/*", i.Mount.Fd())); err != nil || len(names) > 0 {
		t.Errorf("%q is in it, %v", names, err)
	}
	backing, err := os.ReadFile("/sys/block/" + i.Device + "/loop/backing_file")
	if err != nil || !strings.HasPrefix(string(backing), in.Name()) || !strings.HasSuffix(string(backing), "(deleted)\n") {
		t.Errorf("%q is behind it, %v", backing, err)
	}
	if names, err := filepath.Glob(filepath.Join(in.Name(), "*")); err != nil || len(names) > 0 {
		t.Errorf("it left %q, %v", names, err)
	}
}

func TestADeviceIsFreeWhenItsImageIsClosed(t *testing.T) {
	m, in := maker(t)
	i, err := m.Make(in, image.MinLimit)
	if err != nil {
		t.Fatal(err)
	}
	behind := "/sys/block/" + i.Device + "/loop/backing_file"
	if _, err := os.Stat(behind); err != nil {
		t.Error(err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(behind); err == nil && strings.HasPrefix(string(text), in.Name()) {
		t.Errorf("%s has %q", i.Device, text)
	}
}

func TestImagesAreMadeAtOnce(t *testing.T) {
	m, in := maker(t)
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			i, err := m.Make(in, image.MinLimit+forge.Bytes(n%3)*forge.MiB)
			if err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(fmt.Sprintf("/proc/self/fd/%d/file", i.Mount.Fd()), []byte("here"), 0o600); err != nil {
				t.Error(err)
			}
			if err := i.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAFormatterThatCannotStartIsNamed(t *testing.T) {
	m, in := maker(t)
	broken := errors.New("no more processes")
	m.Start = func(*exec.Cmd) error { return broken }
	if _, err := m.Make(in, image.MinLimit); !errors.Is(err, broken) || !strings.Contains(err.Error(), "mkfs.ext4") {
		t.Error(err)
	}
}
