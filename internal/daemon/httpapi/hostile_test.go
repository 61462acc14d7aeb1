package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// Whoever has no token costs nothing for long, whatever is announced: the answer comes at once, and then the end.
func TestAStrangerWhoSendsNoBodyIsAnsweredAndGone(t *testing.T) {
	w := newWorld(t)
	at, err := url.Parse(w.url)
	w.must(err)
	for _, request := range []string{
		"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET /api/v1/attempts/X/log HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", at.Host)
		w.must(err)
		defer conn.Close() //nolint:errcheck // nothing depends on it
		_, err = fmt.Fprint(conn, request)
		w.must(err)
		r := bufio.NewReader(conn)
		answer, err := http.ReadResponse(r, nil)
		w.must(err)
		if _, err = io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s, %v", request, answer.Status, err)
		}
		w.must(answer.Body.Close())
		if _, err := r.ReadByte(); err == nil { // it waits for the end of the connection
			t.Errorf("%q: more than one answer", request)
		}
	}
}

// A stream outlives the time that a body may take, and its end is seen.
func TestABodyOfAStreamThatNeverComesDoesNotHoldItsConnection(t *testing.T) {
	w := newWorld(t)
	run := w.submit(job("a"))
	at, err := url.Parse(w.url)
	w.must(err)
	conn, err := net.Dial("tcp", at.Host)
	w.must(err)
	defer conn.Close() //nolint:errcheck // nothing depends on it
	_, err = fmt.Fprintf(conn, "GET /api/v1/runs/%s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n", run.ID, token)
	w.must(err)
	_, err = w.client.CancelRun(w.ctx, run.ID)
	w.must(err)
	_, err = io.Copy(io.Discard, conn) // it waits for the end of the connection
	if err != nil {
		t.Error(err)
	}
}
