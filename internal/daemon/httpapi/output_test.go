package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// written is an attempt of which some frames of output are stored, among other frames.
func written(t *testing.T) (w *world, a *agent, c forge.AttemptContext, output []byte) {
	t.Helper()
	w = newWorld(t)
	a = w.agent("r")
	w.submit(job("a"))
	c = a.take()
	noise := make([]byte, 50_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for _, text := range []string{"one\r\n", "\xff\x00two\r", string(noise), strings.Repeat("a line of text\n", 4000), "no end"} {
		stream := forge.LogStdout
		if len(text)%2 == 0 {
			stream = forge.LogStderr
		}
		a.say(c, frame(forge.LogStructured, "n"), frame(stream, text), frame(forge.LogAgent, "aside\n"))
		output = append(output, text...)
	}
	return w, a, c, output
}

func rawPath(c forge.AttemptContext, query string) string {
	return "/api/v1/attempts/" + c.Attempt.String() + "/log?format=raw" + query
}

// got is an answer, read to its end.
func (w *world) got(path string, header ...string) (*http.Response, []byte) {
	w.t.Helper()
	answer := w.ask("GET", path, "", "", append(header, "Accept-Encoding", "identity")...)
	body, err := io.ReadAll(answer.Body)
	w.must(err)
	return answer, body
}

// Case B58: whatever part is asked for has exactly its bytes, and says how many.
func TestARawLogHasItsExactBytesAndLengthInAnyRange(t *testing.T) {
	w, a, c, output := written(t)
	for _, sealed := range []bool{false, true} {
		if sealed {
			a.end(c, forge.Result{Class: forge.Succeeded})
		}
		n := len(output)
		for _, test := range []struct {
			asked  string
			status int
			want   []byte
		}{
			{"", 200, output},
			{"bytes=0-0", 206, output[:1]},
			{"bytes=3-", 206, output[3:]},
			{fmt.Sprintf("bytes=%d-%d", n/4, n/4+70_000), 206, output[n/4 : n/4+70_001]},
			{"bytes=-5", 206, output[n-5:]},
			{fmt.Sprintf("bytes=5-%d", n+100), 206, output[5:]},
			{"bytes=1-2,5-9", 200, output},
			{fmt.Sprintf("bytes=%d-", n), 416, nil},
		} {
			answer, body := w.got(rawPath(c, ""), "Range", test.asked)
			if answer.StatusCode != test.status {
				t.Fatalf("%s: status %d", test.asked, answer.StatusCode)
			}
			if test.want != nil && (!bytes.Equal(body, test.want) || answer.ContentLength != int64(len(test.want))) {
				t.Errorf("%s: %d bytes of %d, a length of %d", test.asked, len(body), len(test.want), answer.ContentLength)
			}
			if (answer.Header.Get("Etag") != "") != (sealed && test.status != 416) {
				t.Errorf("%s, sealed %v: the tag is %q", test.asked, sealed, answer.Header.Get("Etag"))
			}
		}
	}
	first, _ := w.got(rawPath(c, ""))
	if again, body := w.got(rawPath(c, ""), "If-None-Match", first.Header.Get("Etag")); again.StatusCode != http.StatusNotModified || len(body) != 0 {
		t.Errorf("asked again: %d with %d bytes", again.StatusCode, len(body))
	}
	if other, body := w.got(rawPath(c, ""), "If-Range", `"other"`, "Range", "bytes=3-"); other.StatusCode != 200 || !bytes.Equal(body, output) {
		t.Errorf("a range of something else: %d with %d bytes", other.StatusCode, len(body))
	}
}

func TestARawLogFromAFrameAndItsTailAreExact(t *testing.T) {
	w, _, c, output := written(t)
	lines := bytes.SplitAfter(output, []byte("\n"))
	for _, n := range []int{1, 2, 3, 4001, 9999} {
		want := bytes.Join(lines[max(0, len(lines)-n):], nil)
		if got := w.raw(c, api.LogOptions{Tail: n}); got != string(want) {
			t.Errorf("the last %d lines have %d bytes, not %d", n, len(got), len(want))
		}
		answer, body := w.got(rawPath(c, fmt.Sprintf("&tail=%d", n)), "Range", "bytes=1-3")
		if !bytes.Equal(body, want[1:4]) || answer.Header.Get("Content-Range") != fmt.Sprintf("bytes 1-3/%d", len(want)) {
			t.Errorf("a range of the last %d lines: %q, %s", n, body, answer.Header.Get("Content-Range"))
		}
	}
	if got := w.raw(c, api.LogOptions{From: 3}); got != string(output[len("one\r\n"):]) {
		t.Errorf("from the third frame: %d bytes", len(got))
	}
	var text strings.Builder
	for e, err := range w.client.Log(w.ctx, c.Attempt.String(), api.LogOptions{Tail: 2}) {
		w.must(err)
		var o api.LogOutput
		if e.Name == api.EventOutput {
			w.must(e.Decode(&o))
			text.Write(o.Data())
		}
	}
	if text.String() != "no endaside\n" && text.String() != "aside\nno endaside\n" {
		t.Errorf("the last lines as events: %q", text.String())
	}
	rest, err := w.client.RawLogFrom(w.ctx, c.Attempt.String(), api.LogOptions{}, 7)
	w.must(err)
	defer func() { _ = rest.Close() }()
	if body, err := io.ReadAll(rest); err != nil || !bytes.Equal(body, output[7:]) {
		t.Errorf("from the seventh byte on: %d bytes, %v", len(body), err)
	}
}

// Case B58, compressed: what arrives decodes to the exact bytes, and no length is told that would be another's.
func TestARawLogIsCompressedForWhoeverTakesThat(t *testing.T) {
	w, a, c, output := written(t)
	a.end(c, forge.Result{Class: forge.Succeeded})
	for accept, compressed := range map[string]bool{
		"zstd": true, "gzip, ZSTD;q=0.5": true, "gzip": false, "zstd;q=0": false, "zstd;q=0.000": false, "": false,
	} {
		answer := w.ask("GET", rawPath(c, ""), "", "", "Accept-Encoding", accept)
		body, err := io.ReadAll(answer.Body)
		w.must(err)
		if got := answer.Header.Get("Content-Encoding") == "zstd"; got != compressed {
			t.Errorf("%q: compressed %v", accept, got)
			continue
		}
		if !compressed {
			if !bytes.Equal(body, output) || answer.ContentLength != int64(len(output)) {
				t.Errorf("%q: %d bytes, a length of %d", accept, len(body), answer.ContentLength)
			}
			continue
		}
		if answer.ContentLength >= 0 || answer.Header.Get("Etag") != "" || len(body) >= len(output) {
			t.Errorf("%q: %d bytes, a length of %d, tag %q", accept, len(body), answer.ContentLength, answer.Header.Get("Etag"))
		}
		decoder, err := zstd.NewReader(bytes.NewReader(body))
		w.must(err)
		plain, err := io.ReadAll(decoder)
		decoder.Close()
		if err != nil || !bytes.Equal(plain, output) {
			t.Errorf("%q: %d bytes come of it, %v", accept, len(plain), err)
		}
	}
	answer := w.ask("GET", rawPath(c, ""), "", "", "Accept-Encoding", "zstd", "Range", "bytes=0-9")
	if body, err := io.ReadAll(answer.Body); err != nil || !bytes.Equal(body, output[:10]) {
		t.Errorf("a range of one who takes zstd: %q, %v", body, err)
	}
}

func TestALogIsSearched(t *testing.T) {
	w, a, c, _ := written(t)
	a.say(c, frame(forge.LogStdout, "\nA Needle"), frame(forge.LogStderr, "\n\xff needle\n"), frame(forge.LogStdout, " goes on\n"))
	attempt := c.Attempt.String()
	found, err := w.client.SearchLog(w.ctx, attempt, api.LogQuery{Text: "needle", IgnoreCase: true})
	w.must(err)
	if len(found.Items) != 2 || found.More {
		t.Fatalf("%+v", found)
	}
	if m := found.Items[1]; m.Text != "A Needle goes on" || m.Seq != 16 || m.Offset != 3 || m.Start != 2 || m.End != 8 || m.Stream != "stdout" {
		t.Errorf("%+v", m)
	}
	if m := found.Items[0]; string(m.Data()) != "\xff needle" || m.Stream != "stderr" {
		t.Errorf("%+v", m)
	}
	seen, after := 0, ""
	for more := true; more; {
		page, err := w.client.SearchLog(w.ctx, attempt, api.LogQuery{Text: "line of", Limit: 150, After: after})
		w.must(err)
		seen, after, more = seen+len(page.Items), page.Next, page.More
	}
	if seen != 4000 {
		t.Errorf("%d of 4000 lines", seen)
	}
	later, err := w.client.SearchLog(w.ctx, attempt, api.LogQuery{Text: "needle", After: found.Next})
	w.must(err)
	if len(later.Items) != 0 {
		t.Errorf("found again: %+v", later.Items)
	}
	for _, query := range []string{"q=", "q=a%0Ab", "q=a&follow=true", "q=a&format=raw", "q=a&tail=3", "q=a&after=x", "q=a&limit=0", "q=%ff&ignore_case=true"} {
		answer := w.ask("GET", "/api/v1/attempts/"+attempt+"/log?"+query, "", "")
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, answer.StatusCode)
		}
	}
}

// Case B61: a reader that takes nothing holds nobody up and costs no memory; once it reads, it is told how far behind it is, and
// everything arrives.
func TestAFollowerThatLagsIsToldAndMissesNothing(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "begin\n"))
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	w.must(err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET /api/v1/attempts/%s/log?follow=true HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n", c.Attempt, token)
	w.must(err)
	piece := strings.Repeat(strings.Repeat("x", 99)+"\n", 600)
	before := memory()
	const pieces = 400 // more than the system keeps for a connection
	for range pieces {
		a.say(c, frame(forge.LogStdout, piece))
	}
	if grown := memory() - before; grown > 16<<20 {
		t.Errorf("%d bytes more are held for a reader that does not read", grown)
	}
	a.end(c, forge.Result{Class: forge.Succeeded})
	stream, err := io.ReadAll(conn)
	w.must(err)
	if n := bytes.Count(stream, []byte("event: output\n")); n != pieces+1 {
		t.Errorf("%d of %d frames", n, pieces+1)
	}
	first := bytes.Index(stream, []byte("event: lag\ndata: {\"seq\":"))
	last := bytes.LastIndex(stream, []byte(`"frames":0,"bytes":0}`))
	if first < 0 || last < first {
		t.Errorf("a lag is told at %d, its end at %d", first, last)
	}
	if !bytes.Contains(stream, []byte("event: end\n")) {
		t.Error("the stream has no end")
	}
}

func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A line of 64 MiB, without an end: exact, in whole and in part, with bounded memory on the daemon's side.
func TestALineOf64MiBIsExact(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	request := job("a")
	w.submit(request)
	c := a.take()
	random := rand.NewChaCha8([32]byte{9})
	piece := make([]byte, forge.MaxLogPayload)
	_, _ = random.Read(piece)
	piece = bytes.ReplaceAll(piece, []byte("\n"), []byte("\r"))
	const pieces = 1024
	for i := range pieces {
		piece[0] = byte(i) | 0x80
		a.say(c, frame(forge.LogStdout, string(piece)))
	}
	a.end(c, forge.Result{Class: forge.Succeeded})
	answer := w.ask("GET", rawPath(c, ""), "", "", "Accept-Encoding", "identity")
	if answer.ContentLength != pieces<<16 {
		t.Fatalf("a length of %d", answer.ContentLength)
	}
	got := make([]byte, len(piece))
	for i := range pieces {
		piece[0] = byte(i) | 0x80
		if _, err := io.ReadFull(answer.Body, got); err != nil || !bytes.Equal(got, piece) {
			t.Fatalf("piece %d is another, %v", i, err)
		}
	}
	if n, err := answer.Body.Read(got); n != 0 || err != io.EOF {
		t.Errorf("%d bytes more, %v", n, err)
	}
}
