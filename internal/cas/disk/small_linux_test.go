package disk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B87. Claim 4.2: a disk that is really full.
func TestOnADiskThatIsFullNothingPartialIsVisibleAndAllIsWellOnceThereIsRoom(t *testing.T) {
	castest.OnSmallDisk(t, 4<<20, func(t *testing.T, dir string) {
		ballast := filepath.Join(dir, "ballast")
		for name, o := range map[string]disk.Options{"plain": {}, "durable": {Durable: true}} {
			if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			s := openedAt(t, filepath.Join(dir, name), o)
			data := castest.Bytes(1, 3<<20)
			ref := digest.RefOf(data)
			p, err := s.Part(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			_, part := p.Write(data)
			if err := p.Close(); err != nil && !errors.Is(err, cas.ErrFull) {
				t.Error(err)
			}
			_, add := s.Add(t.Context(), bytes.NewReader(data))
			for what, err := range map[string]error{
				"put": s.Put(t.Context(), ref, bytes.NewReader(data)), "part": part, "add": add,
				"copy": s.CopyFrom(t.Context(), memoryWith(data), []digest.Ref{ref}),
			} {
				if !errors.Is(err, cas.ErrFull) {
					t.Errorf("%s, %s: %v, want ErrFull", name, what, err)
				}
			}
			castest.Lacks(t, s, ref)
			if report, err := s.Verify(t.Context(), true, nil); err != nil || report.Findings != 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			if p, err = s.Part(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Write(data[p.Held():]); err != nil {
				t.Error(err)
			}
			if err := errors.Join(p.Commit(t.Context()), p.Close()); err != nil {
				t.Error(err)
			}
			castest.Holds(t, s, ref, data)
			if err := errors.Join(s.Close(), os.RemoveAll(filepath.Join(dir, name))); err != nil {
				t.Error(err)
			}
		}
	})
}

func memoryWith(data []byte) *castest.Memory {
	m := castest.NewMemory()
	m.Add(data)
	return m
}

// Claim 4.4: where the disk fills before the bound is reached, a cache gives something up.
func TestACacheMakesRoomOnADiskThatIsFull(t *testing.T) {
	castest.OnSmallDisk(t, 4<<20, func(t *testing.T, dir string) {
		s := openedAt(t, filepath.Join(dir, "cache"), disk.Options{MaxBytes: forge.GiB, Evict: true})
		for i := range 12 {
			data := castest.Bytes(uint64(i), 900<<10)
			castest.Holds(t, s, put(t, s, data), data)
		}
	})
}
