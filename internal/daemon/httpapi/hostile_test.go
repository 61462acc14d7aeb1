package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
)

// Whoever announces a body that is not wanted, and sends none, costs nothing for long: the answer comes at once, and then
// the end of the connection.
func TestABodyThatNeverComesHoldsNothing(t *testing.T) {
	w := newWorld(t)
	at, err := url.Parse(w.url)
	w.must(err)
	const known = "Authorization: Bearer " + token + "\r\n"
	for request, status := range map[string]int{
		"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n":                       http.StatusUnauthorized,
		"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n":                 http.StatusUnauthorized,
		"GET /api/v1/attempts/X/log HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n":              http.StatusUnauthorized,
		"GET /api/v1/attempts/X/log HTTP/1.1\r\nHost: x\r\n" + known + "Content-Length: 1000\r\n\r\n": http.StatusBadRequest,
	} {
		conn, err := net.Dial("tcp", at.Host)
		w.must(err)
		defer conn.Close() //nolint:errcheck // nothing depends on it
		_, err = fmt.Fprint(conn, request)
		w.must(err)
		r := bufio.NewReader(conn)
		answer, err := http.ReadResponse(r, nil)
		w.must(err)
		if _, err = io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != status {
			t.Errorf("%q: %s, %v", request, answer.Status, err)
		}
		w.must(answer.Body.Close())
		if _, err := r.ReadByte(); err == nil { // it waits for the end of the connection
			t.Errorf("%q: more than one answer", request)
		}
	}
}

// Anybody may ask whether the daemon is ready: a crowd that does costs one check at a time.
func TestReadinessIsCheckedOnceAtATime(t *testing.T) {
	var now, most atomic.Int32
	s := New(Config{Ready: func(context.Context) []api.Check {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		runtime.Gosched()
		now.Add(-1)
		return nil
	}})
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() {
			for range 20 {
				w := httptest.NewRecorder()
				s.handler(TCP).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
				if w.Code != http.StatusOK {
					t.Errorf("%d", w.Code)
				}
			}
		})
	}
	crowd.Wait()
	if most.Load() != 1 {
		t.Errorf("%d checks at once", most.Load())
	}
}
