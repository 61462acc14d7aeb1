// Package httpapi serves the daemon's HTTP interface (package api): requests in, what package control and the stores say
// out.
//
// It decides nothing about runs or runners. It refuses requests without a good token (package access), those whose token has
// too small a role, bodies that are too large or not strictly JSON, and ids that fit several things; every refusal and every
// failure is a problem with a stable code, panics included. Handlers are plain functions, and the table in table.go is all that
// there is of routing, with the role that each route asks for: the description of the interface, api/openapi.yaml, is made from
// it and from the types of package api.
//
// There are two ways in: a listener on TCP, where a request shows a bearer token, and the socket in the daemon's folder, where
// the file's permissions say who may. The health of the process, its readiness and the descriptions of what it takes are told
// to anybody. What is under way with a token ends when the token does.
//
// Logs and changes of runs are event streams. A raw log is the output of the workload, stdout and stderr in the order in
// which they came, byte for byte: what the agent says and the events of steps are only in the event stream.
//
// The goroutines are those of net/http, one for each request, with two more for an event stream: one that keeps it alive
// and, for a log that is followed, one that waits for the end of its attempt. Both end before the handler returns.
package httpapi
