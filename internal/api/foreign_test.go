package api_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
)

// problemFrom asks what listens at an address for its runners, and returns the problem that comes of it.
func problemFrom(t *testing.T, endpoint string) *api.Problem {
	t.Helper()
	client, err := api.NewClient(endpoint, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Runners(t.Context(), api.Page{})
	var p *api.Problem
	if !errors.As(err, &p) {
		t.Fatalf("%s was taken for a daemon: %v", endpoint, err)
	}
	return p
}

func TestAnotherServerIsNotTakenForADaemon(t *testing.T) {
	for name, answer := range map[string]struct {
		status      int
		media, body string
	}{
		"a page":                          {200, "text/html", "<html>"},
		"JSON of another product":         {200, api.TypeJSON, `{"status": "ok"}`},
		"a list":                          {200, api.TypeJSON, `[]`},
		"an error with a code of its own": {404, api.TypeJSON, `{"code": "not_found", "message": "no"}`},
		"an error of a gateway":           {503, "text/html", "<html>"},
		"a way to log in":                 {302, "text/html", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", answer.media)
			w.WriteHeader(answer.status)
			_, _ = fmt.Fprint(w, answer.body)
		}))
		p := problemFrom(t, server.URL)
		server.Close()
		if p.Code != api.CodeUnreadableAnswer || !strings.Contains(p.Detail, answer.media+", which is not from a forgeyard daemon") {
			t.Errorf("%s: %s, %v", name, p.Code, p)
		}
	}
}

func TestAWrongSchemeIsToldWithTheRightOne(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer func() { _ = mute.Close(); <-done }()
	for endpoint, want := range map[string]string{
		secure.URL: "SSL_CERT_FILE=FILE",
		"https" + strings.TrimPrefix(plain.URL, "http"): "begins with http://",
		"http://" + mute.Addr().String():                "begins with https://",
	} {
		if p := problemFrom(t, endpoint); p.Code != api.CodeUnreachable || !strings.HasSuffix(p.Detail, want) {
			t.Errorf("%s: %s, %v", endpoint, p.Code, p)
		}
	}
}
