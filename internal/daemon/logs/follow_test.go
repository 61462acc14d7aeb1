package logs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestALogIsReadFromAnyFrameOn(t *testing.T) {
	f := newFixture(t)
	line := strings.Repeat("x", 30_000)
	for range 30 { // three segments, one of them not full
		f.append(slices.Repeat([]string{line}, 20)...)
	}
	read := func(what string) {
		t.Helper()
		for _, from := range []int{1, 2, 9, 250, 279, 280, 281, 599, 600} {
			var got []forge.LogFrame
			if err := f.store.Read(ctx, f.Attempt, forge.LogSeq(from), collect(&got)); err != nil {
				t.Fatalf("%s from %d: %v", what, from, err)
			}
			if !slices.EqualFunc(got, f.wrote[from-1:], equal) {
				t.Fatalf("%s from %d: %d frames, not the %d", what, from, len(got), len(f.wrote)-from+1)
			}
		}
	}
	read("open")
	f.restart()
	read("opened again")
	index := f.store.SegmentPath(f.Attempt, 1) + ".idx"
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		if at%37 != 0 {
			continue
		}
		bad := slices.Clone(data)
		bad[at] ^= 4
		_ = f.store.Close()
		if err := os.WriteFile(index, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f.store = open(t, f.dir, f.table)
		if err := f.store.Read(ctx, f.Attempt, 600, func(forge.LogFrame) error { return nil }); err != nil {
			t.Fatalf("with a damaged index at %d: %v", at, err)
		}
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	f.restart()
	read("without an index")
	f.append("and on")
	f.check()
}

// Case B61: a follower that does not keep up lags, misses nothing, and holds nobody up.
func TestAFollowerThatLagsHoldsNobodyUp(t *testing.T) {
	f := newFixture(t)
	f.append("0")
	var read []forge.LogFrame
	started, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		take, first := collect(&read), true
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(one forge.LogFrame) error {
			if first {
				close(started)
				<-goOn
				first = false
			}
			return take(one)
		})
	}()
	<-started
	for i := range 100 {
		f.append(fmt.Sprint(i))
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-ended; err != nil || !slices.EqualFunc(read, f.wrote, equal) {
		t.Errorf("%d frames of %d, %v", len(read), len(f.wrote), err)
	}
}

func TestManyFollowersReadWhatIsAppendedAndEndWithTheSeal(t *testing.T) {
	f := newFixture(t)
	const followers = 20
	reads, ended := make([][]forge.LogFrame, followers), make(chan error, followers)
	for i := range followers {
		go func() { ended <- f.store.Follow(ctx, f.Attempt, forge.LogSeq(i), collect(&reads[i])) }()
	}
	for i := range 200 {
		f.append(fmt.Sprint(i))
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	for range followers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for i, read := range reads {
		if !slices.EqualFunc(read, f.wrote[max(i, 1)-1:], equal) {
			t.Errorf("follower %d read %d frames", i, len(read))
		}
	}
}

func TestAFollowerHearsOfAFrameWhenItIsStored(t *testing.T) {
	f := newFixture(t)
	heard, ended := make(chan forge.LogSeq), make(chan error, 1)
	go func() {
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(one forge.LogFrame) error { heard <- one.Seq; return nil })
	}()
	for i := range 10 {
		f.append(fmt.Sprint(i))
		if seq := <-heard; int(seq) != i+1 {
			t.Fatalf("frame %d, not %d", seq, i+1)
		}
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAFollowerEndsWithItsContextAndWithTheStore(t *testing.T) {
	f := newFixture(t)
	f.append("1")
	gone := errors.New("gone")
	c, cancel := context.WithCancelCause(ctx)
	err := f.store.Follow(c, f.Attempt, 0, func(forge.LogFrame) error { cancel(gone); return nil })
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	ended, started := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(forge.LogFrame) error { close(started); return nil })
	}()
	<-started
	_ = f.store.Close()
	if err := <-ended; !errors.Is(err, logs.ErrClosed) {
		t.Error(err)
	}
}

func TestTheTailBeginsWithWholeLines(t *testing.T) {
	f := newFixture(t)
	for i := range 300 {
		f.append(fmt.Sprintf("%d\n", i), strings.Repeat("y", 9000)+"\n")
	}
	for _, lines := range []int{0, 1, 2, 3, 99, 600, 1000} {
		from, err := f.store.Tail(ctx, f.Attempt, lines)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := f.store.Text(ctx, f.Attempt, from, false, &text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "\n"); got != min(lines, 600) {
			t.Errorf("%d lines from frame %d on, not %d", got, from, lines)
		}
	}
}
