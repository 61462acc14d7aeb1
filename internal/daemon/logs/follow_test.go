package logs_test

import (
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

// textFrom is what is shown from a place on.
func (f *fixture) textFrom(from logs.Place) string {
	f.t.Helper()
	var text strings.Builder
	skip := from.Skip
	err := f.store.Read(ctx, f.Attempt, from.Seq, func(one forge.LogFrame) error {
		if one.Stream != forge.LogStructured {
			text.Write(one.Bytes[skip:])
		}
		skip = 0
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return text.String()
}

func TestTheTailIsTheLastLinesExactly(t *testing.T) {
	f := newFixture(t)
	var all strings.Builder
	for i := range 300 {
		texts := []string{fmt.Sprintf("%d\nsecond\n\nfourth", i), " goes on\n", strings.Repeat("y", 9000) + "\r\n"}
		if i == 299 {
			texts = append(texts, "no end")
		}
		f.append(texts...)
		all.WriteString(strings.Join(texts, ""))
	}
	for _, packed := range []bool{false, true} {
		if packed {
			if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
				t.Fatal(err)
			}
			f.store.Pack(ctx)
		}
		lines := strings.SplitAfter(all.String(), "\n")
		for _, n := range []int{1, 2, 3, 4, 5, 6, 99, len(lines) - 1, len(lines), len(lines) + 1, logs.MaxTail + 1} {
			from, err := f.store.Tail(ctx, f.Attempt, n, n%2 == 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.textFrom(from); got != strings.Join(lines[max(0, len(lines)-n):], "") {
				t.Errorf("the last %d lines begin at %v, with %.20q", n, from, got)
			}
		}
	}
	if from, err := f.store.Tail(ctx, f.Attempt, 0, false); err != nil || int(from.Seq) != len(f.wrote)+1 {
		t.Errorf("no lines begin at %v, %v", from, err)
	}
}

// A line that is longer than what is looked at begins somewhere within.
func TestTheTailLooksOnlySoFarBack(t *testing.T) {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	f.append("first\n")
	piece := strings.Repeat("x", forge.MaxLogPayload)
	for range 400 {
		f.append(piece)
	}
	from, err := f.store.Tail(ctx, f.Attempt, 1, false)
	if behind := (len(f.wrote) - int(from.Seq)) * len(piece); err != nil || behind < 16<<20 || behind > 18<<20 {
		t.Errorf("begins at %v, %d bytes from the end, %v", from, behind, err)
	}
}
