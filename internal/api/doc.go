// Package api is the daemon's HTTP interface as Go: the JSON of its requests and answers, the stable codes of its
// problems, and a client.
//
// Everything below Base is JSON in UTF-8; durations are text such as "20m", sizes such as "4GiB", times RFC 3339 in
// UTC, ids ULIDs. Where an id is asked for, the first characters of it do, if they name one thing only. A failure is
// application/problem+json, see Problem: callers branch on its Code, never on its texts.
//
// Requests are decoded strictly (Decode): a field that is not known, is there twice or has the wrong type is a problem
// with its place, not something to pass over. Answers may gain fields, so a client passes over those that it does not
// know.
//
// The package decides nothing about runs or runners and knows no store. It refuses only what cannot be turned into a
// value of package forge. The client starts no goroutine; a stream that it opened ends with its context or with Close.
package api

// Base is the path below which this version of the interface stands.
const Base = "/api/v1"

// Bounds of requests, in bytes. A longer body is answered with CodeTooLarge.
const (
	MaxRunBytes     = 8 << 20 // of a run with all its jobs
	MaxRequestBytes = 1 << 20 // of any other request
)

// Bounds of lists.
const (
	DefaultPage = 50
	MaxPage     = 200
)

// MinIDPrefix is the least number of characters of an id that are looked up.
const MinIDPrefix = 4

// Names of headers and media types.
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderLastEventID    = "Last-Event-ID"
	TypeJSON             = "application/json"
	TypeProblem          = "application/problem+json"
	TypeEvents           = "text/event-stream"
	TypeRawLog           = "application/octet-stream"
)

// MaxIdempotencyKey bounds an idempotency key in bytes.
const MaxIdempotencyKey = 128

// List is one page of a list, newest first unless said otherwise. Next is what the following page is asked with, empty
// at the end.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}
