// Package v1 writes its numbers out; the word iota in a comment is only a word.
package v1

// Kinds of stream.
const (
	Control = 1
	Log     = 2
)
