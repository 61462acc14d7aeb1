package api

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// A complete answer can tell whether it holds what a daemon always sends. The JSON of another server decodes as well, into
// nothing, and would read as a list in which nothing is.
type complete interface{ complete() bool }

func (l *List[T]) complete() bool { return l.Items != nil }
func (v *Version) complete() bool { return v.Version != "" }
func (r *Run) complete() bool     { return r.ID != "" }
func (r *Runner) complete() bool  { return r.ID != "" }

// decode reads an answer that was carried out into out.
func decode(r call, answer *http.Response, data []byte, out any) error {
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(data, out)
	switch whole, ok := out.(complete); {
	case errors.As(err, &wrong): // its text names types of ours
		return foreign(r, answer)
	case err != nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), TypeJSON):
		return foreign(r, answer)
	case err != nil:
		return NewProblem(CodeUnreadableAnswer, "%s %s: %v", r.method, r.path, err)
	case ok && !whole.complete():
		return foreign(r, answer)
	}
	return nil
}

// problemOf is the error of an answer that says no. Other products have codes in theirs, too.
func problemOf(r call, answer *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(answer.Body, MaxRequestBytes))
	var p Problem
	if err == nil && json.Unmarshal(data, &p) == nil && p.Code != "" && strings.HasPrefix(p.Type, typePrefix) {
		return &p
	}
	return foreign(r, answer)
}

// foreign is the error of an answer that another program than a daemon has given.
func foreign(r call, answer *http.Response) error {
	media := answer.Header.Get("Content-Type")
	if media == "" {
		media = "nothing"
	}
	return NewProblem(CodeUnreadableAnswer, "%s %s: %s with %s, which is not from a forgeyard daemon",
		r.method, r.path, clip(answer.Status), clip(media))
}

// roadless says why a request got no answer. What mostly lies at the scheme of the address is told with that.
func roadless(err error) string {
	var outer *url.Error
	scheme := ""
	if errors.As(err, &outer) {
		err = outer.Err
		scheme, _, _ = strings.Cut(outer.URL, "://")
	}
	var plain tls.RecordHeaderError
	var unsigned x509.UnknownAuthorityError
	switch {
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "what listens there does not speak TLS; without TLS its address begins with http://"
	case errors.As(err, &unsigned):
		return "its certificate is signed by nobody whom this machine trusts; name the certificate of its CA: SSL_CERT_FILE=FILE"
	case scheme == "http" && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return "it closes the connection without an answer; with TLS its address begins with https://"
	}
	return err.Error()
}
