package logs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// find searches on until nothing is left, as a caller does.
func find(t interface{ Fatal(...any) }, s *logs.Store, attempt forge.AttemptID, q logs.Query) (all []logs.Match, searches int) {
	for {
		searches++
		found, err := s.Search(ctx, attempt, q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Limit > 0 && len(found.Matches) > q.Limit {
			t.Fatal("more matches than were asked for")
		}
		all = append(all, found.Matches...)
		if q.From, err = logs.ParseCursor(found.Next.String()); err != nil {
			t.Fatal(err)
		}
		if found.Done {
			return all, searches
		}
	}
}

// What is found is what a reader of each stream would find, line by line, whatever the frames and the steps of the search.
func TestASearchFindsEachLineOnce(t *testing.T) {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	rapid.Check(t, func(r *rapid.T) {
		c := f.table.begin(0)
		var frames []forge.LogFrame
		texts := map[forge.LogStream]string{}
		starts := map[forge.LogStream][]logs.Place{} // of each byte
		for seq := range rapid.IntRange(0, 30).Draw(r, "frames") {
			one := forge.LogFrame{
				Seq: forge.LogSeq(seq + 1), Stream: forge.LogStream(rapid.IntRange(1, 4).Draw(r, "stream")), Time: 1,
				Bytes: []byte(rapid.StringMatching(`[abA\n]{1,12}`).Draw(r, "text")),
			}
			frames = append(frames, one)
			texts[one.Stream] += string(one.Bytes)
			for i := range one.Bytes {
				starts[one.Stream] = append(starts[one.Stream], logs.Place{Seq: one.Seq, Skip: i})
			}
		}
		if _, err := f.store.Append(ctx, c.Runner, c.Attempt, frames); err != nil {
			r.Fatal(err)
		}
		if rapid.Bool().Draw(r, "sealed") && len(frames) > 0 {
			if _, err := f.store.Seal(ctx, seal(f.table, c)); err != nil {
				r.Fatal(err)
			}
		}
		q := logs.Query{
			Text: rapid.SampledFrom([]string{"a", "ab", "aab", "bA"}).Draw(r, "query"), IgnoreCase: rapid.Bool().Draw(r, "case"),
			Limit: rapid.IntRange(1, 5).Draw(r, "limit"),
		}
		want := map[string]int{}
		for stream := forge.LogStdout; stream <= forge.LogAgent; stream++ {
			at := 0
			for _, line := range strings.SplitAfter(texts[stream], "\n") {
				in, text := line, q.Text
				if q.IgnoreCase {
					in, text = strings.ToLower(in), strings.ToLower(text)
				}
				if i := strings.Index(in, text); i >= 0 {
					want[fmt.Sprint(stream, strings.TrimSuffix(line, "\n"), starts[stream][at+i])]++
				}
				at += len(line)
			}
		}
		got, _ := find(r, f.store, c.Attempt, q)
		for _, m := range got {
			key := fmt.Sprint(m.Stream, string(m.Text), m.Place)
			if want[key]--; want[key] < 0 {
				r.Fatalf("%s was found once too often", key)
			}
			if !strings.EqualFold(string(m.Text[m.Start:m.End]), q.Text) {
				r.Fatalf("%q at %d to %d is not %q", m.Text, m.Start, m.End, q.Text)
			}
		}
		for key, n := range want {
			if n != 0 {
				r.Fatalf("%s was not found", key)
			}
		}
	})
}

func TestALineOfManyMegabytesIsSearchedInParts(t *testing.T) {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	piece := bytes.Repeat([]byte("x"), 50_001)
	for i := range 900 { // more than one search looks at
		one := bytes.Clone(piece)
		if i%300 == 10 {
			copy(one[len(one)-3:], "nee")
		}
		if i%300 == 11 {
			copy(one, "dle")
		}
		f.append(string(one))
	}
	f.append("needle")
	got, searches := find(t, f.store, f.Attempt, logs.Query{Text: "needle"})
	if searches != 2 || len(got) != 4 {
		t.Fatalf("%d matches in %d searches", len(got), searches)
	}
	for i, m := range got[:3] {
		if want := (logs.Place{Seq: forge.LogSeq(i*300 + 11), Skip: 49_998}); m.Place != want || len(m.Text) > logs.MaxMatchText || string(m.Text[m.Start:m.End]) != "needle" {
			t.Errorf("match %d is at %v, not %v, in %d bytes", i, m.Place, want, len(m.Text))
		}
	}
}

// A line that has begun and does not end must not keep each search at its beginning.
func TestASearchComesForwardBesideALineWithoutEnd(t *testing.T) {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	f.append("a needle without an end")
	piece := strings.Repeat(strings.Repeat("y", 99)+"\n", 600)
	for range 4 * logs.SearchBytes / len(piece) {
		frames := f.frames(piece)
		frames[0].Stream = forge.LogStderr
		if len(f.wrote)*len(piece) > 60<<20 {
			break
		}
		if _, err := f.store.Append(ctx, f.Runner, f.Attempt, frames); err != nil {
			t.Fatal(err)
		}
		f.wrote = append(f.wrote, frames...)
	}
	got, searches := find(t, f.store, f.Attempt, logs.Query{Text: "needle"})
	if len(got) != 1 || got[0].Place.Seq != 1 || searches > 3 {
		t.Errorf("%d matches in %d searches", len(got), searches)
	}
}

func TestASearchGoesOnInWhatHasCome(t *testing.T) {
	f := newFixture(t)
	f.append("one needle\n", "half a nee")
	found, err := f.store.Search(ctx, f.Attempt, logs.Query{Text: "needle"})
	if err != nil || !found.Done || found.Sealed || len(found.Matches) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	f.append("dle\nanother needle at the end")
	found, err = f.store.Search(ctx, f.Attempt, logs.Query{Text: "needle", From: found.Next})
	if err != nil || len(found.Matches) != 2 || string(found.Matches[0].Text) != "half a needle" {
		t.Fatalf("%+v, %v", found, err)
	}
	found, err = f.store.Search(ctx, f.Attempt, logs.Query{Text: "needle", From: found.Next})
	if err != nil || len(found.Matches) != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
}

func TestAMatchIsShownWithWhatStandsAroundIt(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("é", 3000)
	f.append(long + "Straße ÄPFEL" + long + "\n\xff\x00 äpfel\n")
	got, _ := find(t, f.store, f.Attempt, logs.Query{Text: "äpfel", IgnoreCase: true})
	if len(got) != 2 {
		t.Fatalf("%d matches", len(got))
	}
	if text := string(got[0].Text); len(text) > logs.MaxMatchText || len(text) < logs.MaxMatchText-4 ||
		strings.ToValidUTF8(text, "?") != text || text[got[0].Start:got[0].End] != "ÄPFEL" {
		t.Errorf("%q", text)
	}
	if string(got[1].Text) != "\xff\x00 äpfel" {
		t.Errorf("%q", got[1].Text)
	}
}

func TestAQueryThatMakesNoSenseIsRefused(t *testing.T) {
	f := newFixture(t)
	for _, q := range []logs.Query{{}, {Text: "a\nb"}, {Text: strings.Repeat("x", logs.MaxQuery+1)}, {Text: "\xff", IgnoreCase: true}} {
		if _, err := f.store.Search(ctx, f.Attempt, q); !errors.Is(err, logs.ErrQuery) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, text := range []string{"", "1.0", "1.0-1.0-1.0-1.0", "x.0-1.0-1.0", "1.0-1-1.0", "1.99999-1.0-1.0", "-1.0-1.0-1.0"} {
		if c, err := logs.ParseCursor(text); !errors.Is(err, logs.ErrQuery) {
			t.Errorf("%q is %v, %v", text, c, err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	f.append("x")
	if _, err := f.store.Search(gone, f.Attempt, logs.Query{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
