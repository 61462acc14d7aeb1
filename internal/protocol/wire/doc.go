// Package wire turns what the cores say into bytes and bytes into what the cores understand: the one place that knows
// every message of every family.
//
//	domain frame ─FromDomain─▶ wire struct ─AppendFrame─▶ bytes ─Decode─▶ wire struct ─Domain─▶ domain frame
//
// EncodeFrame and DecodeFrame go the whole way. Messages that the domain has no value for go the half of it, with
// protocol.AppendFrame and Decode.
//
// It refuses what is not registered, not valid, or not encoded in the one way there is. Pure.
package wire
