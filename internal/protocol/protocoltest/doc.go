// Package protocoltest is the test kit of the wire: samples of every message, the checks that each message's own test
// and fuzz target run, and the golden vectors under protocols/vectors.
//
// A sample of each type is as small as it may be, one is as it comes in practice, and one has every list and text at its
// limit. Tests, fuzz targets and vectors use the same samples, so a new message that has samples has all three.
//
// Vectors are files, not code: they are what other versions and other implementations are held to. Until the first
// release `go test ./internal/protocol/protocoltest -update` writes them anew; released ones are never written again.
package protocoltest
