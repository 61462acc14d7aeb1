package logs_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case T13: 20 restarts in the middle of a log leave its transcript exact.
func TestTheTranscriptIsExactAfterTwentyRestarts(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		for j := range 10 {
			f.append(fmt.Sprintf("round %d line %d\n", i, j))
		}
		f.restart()
	}
	f.check()
}

// Rows I08 and I09: random appends, repeats, lost answers, failing disks and crashes; what is read is what was
// acknowledged, and then what was sent.
func TestAnyHistoryKeepsTheTranscript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "logs")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		tab := newTable()
		c := tab.begin(0)
		s := open(t, dir, tab)
		defer func() { _ = s.Close() }()
		var sent []forge.LogFrame // acknowledged or not
		acked := forge.LogSeq(1)
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				for range rapid.IntRange(0, 5).Draw(r, "frames") {
					text := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(r, "bytes")
					sent = append(sent, forge.LogFrame{Seq: forge.LogSeq(len(sent) + 1), Stream: forge.LogStdout, Bytes: text})
				}
				from := rapid.IntRange(0, int(acked)-1).Draw(r, "from")
				next, err := s.Append(ctx, c.Runner, c.Attempt, sent[from:])
				if err != nil {
					r.Fatal(err)
				}
				acked = next
			},
			"lost": func(r *rapid.T) {
				tab.lose(rapid.Bool().Draw(r, "committed"))
				sent = append(sent, forge.LogFrame{Seq: forge.LogSeq(len(sent) + 1), Stream: forge.LogStderr, Bytes: []byte("lost")})
				if _, err := s.Append(ctx, c.Runner, c.Attempt, sent[acked-1:]); err == nil {
					r.Fatal("no error")
				}
			},
			"crash": func(r *rapid.T) {
				_ = s.Close()
				path := s.SegmentPath(c.Attempt, 1)
				if file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
					_, _ = file.Write(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(r, "garbage"))
					_ = file.Close()
				}
				s = open(t, dir, tab)
			},
			"": func(r *rapid.T) {
				var read []forge.LogFrame
				if err := s.Read(ctx, c.Attempt, 0, collect(&read)); err != nil {
					r.Fatal(err)
				}
				if len(read) < int(acked)-1 || len(read) > len(sent) || !slices.EqualFunc(read, sent[:len(read)], equal) {
					r.Fatalf("%d frames are read, %d were acknowledged, %d sent", len(read), acked-1, len(sent))
				}
			},
		})
	})
}
