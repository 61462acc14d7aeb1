package snapshot_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/snapshot"
)

// source is the folder named by FORGEYARD_SNAPSHOT_DIR, a large one on a fast file system. It is only read.
func source(b *testing.B) string {
	b.Helper()
	dir := os.Getenv("FORGEYARD_SNAPSHOT_DIR")
	if dir == "" {
		b.Skip("FORGEYARD_SNAPSHOT_DIR names no folder")
	}
	return dir
}

// What a capture of an unchanged source is measured against.
func BenchmarkWalkDirLstat(b *testing.B) {
	dir := source(b)
	files := 0
	for b.Loop() {
		files = 0
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.Name() == ".git" {
				return filepath.SkipDir
			}
			files++
			_, err = e.Info()
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(files), "paths")
}

func BenchmarkUnchanged(b *testing.B) {
	o, m := snapshot.Options{Dir: source(b), Index: filepath.Join(b.TempDir(), "index")}, newMemory()
	for range 2 { // once more for what was too young
		if _, err := snapshot.Take(b.Context(), o, m); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("knows the tree", func(b *testing.B) {
		for b.Loop() {
			if _, err := snapshot.Take(b.Context(), o, holder{m}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("knows objects", func(b *testing.B) {
		for b.Loop() {
			if _, err := snapshot.Take(b.Context(), o, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCold(b *testing.B) {
	dir := source(b)
	for b.Loop() {
		if _, err := snapshot.Take(b.Context(), snapshot.Options{Dir: dir}, newMemory()); err != nil {
			b.Fatal(err)
		}
	}
}
