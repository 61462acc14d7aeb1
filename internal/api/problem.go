package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Code is the stable name of a kind of problem. Codes are only ever added.
type Code string

// The codes, with the HTTP status that each comes with.
const (
	CodeMalformed        Code = "malformed"            // 400: the body, a parameter or a header cannot be read
	CodeUnauthenticated  Code = "unauthenticated"      // 401: no token, or none that this daemon knows
	CodeTokenExpired     Code = "token_expired"        // 401: the token's time is over
	CodeTokenRevoked     Code = "token_revoked"        // 401: somebody has ended the token
	CodeForbidden        Code = "forbidden"            // 403: the token's role may not do this; Detail says which may
	CodeNotFound         Code = "not_found"            // 404: nothing has this id
	CodeNoRoute          Code = "no_route"             // 404: there is no such path
	CodeMethod           Code = "method_not_allowed"   // 405
	CodeAmbiguous        Code = "ambiguous_id"         // 409: the first characters of the id fit several
	CodeConflict         Code = "conflict"             // 409: not in the state that the thing is in
	CodeIdempotency      Code = "idempotency_mismatch" // 409: the key came with another request before
	CodeOffset           Code = "wrong_offset"         // 409: not where the upload has to go on; the header Upload-Offset says
	CodeTooLarge         Code = "too_large"            // 413
	CodeMediaType        Code = "unsupported_media"    // 415: not application/json
	CodeInvalid          Code = "invalid"              // 422: readable, but wrong; Problems says where and what
	CodeNotYet           Code = "not_supported_yet"    // 422: means something that this version cannot do
	CodeDigest           Code = "digest_mismatch"      // 422: the bytes are not the object that they were sent as
	CodeNotFile          Code = "not_a_file"           // 422: the path names a folder or a link
	CodeInternal         Code = "internal"             // 500: our fault; the daemon's log says more
	CodeDamaged          Code = "damaged"              // 500: the stored bytes are not what they were; whoever has them can send them again
	CodeUnavailable      Code = "unavailable"          // 503: try again
	CodeUnknownOutcome   Code = "unknown_outcome"      // 503: may or may not have happened; ask again with the same key
	CodeNoRoom           Code = "no_room"              // 507: the daemon's disk or store is full
	CodeUnreachable      Code = "unreachable"          // never sent: the client got no answer
	CodeUnreadableAnswer Code = "unreadable_answer"    // never sent: the client got an answer that it cannot read
)

var statuses = map[Code]int{
	CodeMalformed: 400, CodeUnauthenticated: 401, CodeTokenExpired: 401, CodeTokenRevoked: 401, CodeForbidden: 403, CodeNotFound: 404, CodeNoRoute: 404, CodeMethod: 405,
	CodeAmbiguous: 409, CodeConflict: 409, CodeIdempotency: 409, CodeOffset: 409, CodeTooLarge: 413, CodeMediaType: 415,
	CodeInvalid: 422, CodeNotYet: 422, CodeDigest: 422, CodeNotFile: 422, CodeInternal: 500, CodeDamaged: 500,
	CodeUnavailable: 503, CodeUnknownOutcome: 503, CodeNoRoom: 507,
}

// Codes lists the codes that a daemon sends.
func Codes() []Code { return slices.Sorted(maps.Keys(statuses)) }

// Status is the HTTP status that a code comes with; 500 for one that a daemon does not send.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 500
}

// Problem is why a request was not carried out (RFC 9457). As an error it reads as one sentence for people.
type Problem struct {
	Type     string  `json:"type"` // a URN that ends in the code
	Title    string  `json:"title"`
	Status   int     `json:"status"`
	Code     Code    `json:"code"`
	Detail   string  `json:"detail,omitempty"`   // what, where, and what to do
	Problems []Wrong `json:"problems,omitempty"` // every single thing that is wrong with the request
}

// Wrong is one thing that is wrong with a request.
type Wrong struct {
	Path string `json:"path,omitempty"` // as in jobs[0].spec.steps[3].timeout; empty for the request itself
	What string `json:"what"`
	Hint string `json:"hint,omitempty"` // what to do
	// Of a pipeline file: Path is the file, and here stand the place, from 1, and the kind of problem.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Kind   string `json:"kind,omitempty"`
}

var titles = map[Code]string{
	CodeMalformed: "The request cannot be read", CodeUnauthenticated: "Not authenticated",
	CodeTokenExpired: "The token has expired", CodeTokenRevoked: "The token was revoked", CodeForbidden: "Not allowed",
	CodeNotFound: "Not found", CodeNoRoute: "There is no such path", CodeMethod: "The path does not have this method",
	CodeAmbiguous: "The id fits several things", CodeConflict: "Not possible in this state",
	CodeIdempotency: "The idempotency key was used for another request", CodeTooLarge: "The request is too large",
	CodeMediaType: "The body is of another kind", CodeInvalid: "The request is not valid",
	CodeNotYet: "This version cannot do that yet", CodeInternal: "The daemon failed",
	CodeUnavailable: "The daemon cannot do that now", CodeUnknownOutcome: "The outcome is not known",
	CodeOffset: "The upload goes on elsewhere", CodeDigest: "The bytes are not the object",
	CodeNotFile: "Not a file", CodeDamaged: "The stored bytes are damaged", CodeNoRoom: "The daemon has no room",
	CodeUnreachable: "The daemon does not answer", CodeUnreadableAnswer: "The daemon's answer cannot be read",
}

const typePrefix = "urn:forgeyard:problem:"

// NewProblem returns a problem with everything that follows from its code.
func NewProblem(code Code, format string, args ...any) *Problem {
	return &Problem{
		Type: typePrefix + string(code), Title: titles[code], Status: code.Status(), Code: code,
		Detail: fmt.Sprintf(format, args...),
	}
}

// Invalid returns the problem of a request in which something is wrong, each place below prefix.
func Invalid(code Code, prefix string, found forge.Problems) *Problem {
	p := NewProblem(code, "%d of its values must be changed", len(found))
	if len(found) == 1 {
		p.Detail = "one of its values must be changed"
	}
	for _, f := range found {
		p.Problems = append(p.Problems, Wrong{Path: join(prefix, f.Path), What: f.What})
	}
	return p
}

func (p *Problem) Error() string {
	texts := []string{p.Title}
	if p.Detail != "" {
		texts = append(texts, p.Detail)
	}
	var wrong []string
	for _, w := range p.Problems {
		wrong = append(wrong, w.String())
	}
	if len(wrong) > 0 {
		texts = append(texts, strings.Join(wrong, "; "))
	}
	return strings.Join(texts, ": ")
}

func (w Wrong) String() string {
	if w.Path == "" {
		return w.What
	}
	return w.Path + ": " + w.What
}

// join puts a place below another.
func join(above, below string) string {
	if above == "" || below == "" || below[0] == '[' {
		return above + below
	}
	return above + "." + below
}
