// Package inspect takes the wire apart for people: frames, bodies, captured streams and golden vectors become a tree of
// names and values, as text or JSON. forgeyard-protocol-inspect is its command.
//
// It shows no secret: the value of one prints as a placeholder whatever it is part of, and bytes that do not decode are
// never shown at all. Errors say what is wrong, at which byte of the input, and what to do.
//
// Pure: it reads from an io.Reader that it is given and returns what it found.
package inspect
