package disk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// The files of a source tree: 50,000 of about 4 KiB. BenchmarkFiles makes them with nothing of ours, BenchmarkAdd stores
// them; the second should take no more than 1.3 times the first. Set FORGEYARD_BENCH_DIR to a folder on tmpfs: most disks
// drown the difference.
const benchFiles = 50_000

func benchDir(b *testing.B) string {
	dir, err := os.MkdirTemp(os.Getenv("FORGEYARD_BENCH_DIR"), "cas")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

func benchContents() [][]byte {
	contents := make([][]byte, benchFiles)
	random := castest.Bytes(1, 16<<10)
	for i := range contents {
		contents[i] = append(fmt.Appendf(nil, "%d", i), random[:(i*7919)%(8<<10)]...)
	}
	return contents
}

// two calls f for each number, by two workers.
func two(n int, f func(i int)) {
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for i := worker; i < n; i += 2 {
				f(i)
			}
		})
	}
	group.Wait()
}

func BenchmarkFiles(b *testing.B) {
	contents := benchContents()
	for b.Loop() {
		b.StopTimer()
		dir := benchDir(b)
		for i := range 256 {
			if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("%02x", i)), 0o700); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		two(benchFiles, func(i int) {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02x", i%256), fmt.Sprint(i)), contents[i], 0o444); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	for name, o := range map[string]disk.Options{"plain": {}, "durable": {Durable: true}} {
		b.Run(name, func(b *testing.B) {
			contents := benchContents()
			for b.Loop() {
				b.StopTimer()
				s := openedAt(b, benchDir(b), o)
				batch := s.Batch()
				b.StartTimer()
				two(benchFiles, func(i int) {
					if _, err := batch.Add(context.Background(), bytes.NewReader(contents[i])); err != nil {
						b.Error(err)
					}
				})
				if err := batch.Commit(context.Background()); err != nil {
					b.Error(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := openedAt(b, benchDir(b), disk.Options{})
	contents := benchContents()
	refs := make([]digest.Ref, len(contents))
	two(benchFiles, func(i int) {
		var err error
		if refs[i], err = s.Add(context.Background(), bytes.NewReader(contents[i])); err != nil {
			b.Error(err)
		}
	})
	for b.Loop() {
		two(benchFiles, func(i int) {
			r, err := s.Open(context.Background(), refs[i])
			if err != nil {
				b.Error(err)
				return
			}
			if err := r.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
