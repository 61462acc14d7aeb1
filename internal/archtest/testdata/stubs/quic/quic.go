// Package quic stands in for the module of that name.
package quic

// Stream is a stream.
type Stream struct{}
