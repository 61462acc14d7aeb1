// Package casv1 holds the messages of object transfer. They are small heads: the bytes of an object never stand in a
// message but follow one on the same stream (09§37), and whoever gets them hashes them (09§91).
//
// An object is named by digest and size, and only on behalf of an attempt whose lease says that it may be had (09§93).
// There is no message that lists what a daemon has.
//
// Pure: forms and their validation.
package casv1
