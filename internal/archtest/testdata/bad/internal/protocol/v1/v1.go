// Package v1 numbers with iota.
package v1

// Kinds of stream.
const (
	Control = iota // want iota "iota numbers a wire value"
	Log
)
