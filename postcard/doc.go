// Package postcard encodes Go values in the Postcard wire format and decodes them again, byte for
// byte as version 1 of the Rust crate postcard does. It depends on the standard library only.
//
// Postcard is small and not self-describing: names and types are not on the wire, so both sides
// must have the same definition, and every change of a definition is a new format. Here a Go
// struct is that definition. A plan is made from it at its first use, checked, and kept:
//
//	type Heartbeat struct {
//		Runner   [16]byte                          // sixteen bytes, no length
//		Sequence uint64                            // varint
//		Cursor   *uint64                           // option: nil is None
//		Attempts []Attempt `postcard:"max=256"`    // at most 256 of them
//		Labels   []string  `postcard:"max=16,elem=64"`
//	}
//
// # Format
//
//	bool, u8, i8        one byte
//	u16 … u128          varint: 7 bits a byte, low bits first, high bit set on all but the last
//	i16 … i128          zigzag (0, -1, 1, -2 → 0, 1, 2, 3), then varint
//	f32, f64            4 or 8 bytes, little-endian
//	string, bytes       varint length | bytes
//	char                as a string of one character
//	option              00 | 01 value
//	list                varint count | items
//	map                 varint count | key value | key value …
//	array, struct       the parts one after another
//	enum                varint(u32) discriminant | payload
//	unit                nothing
//
// # Go types
//
//	bool; int8 … int64; uint8 … uint64; float32, float64
//	                    their namesakes; so are types defined from them. A C-like enum is a
//	                    uint32 (a uint8 is a plain byte, which differs from 128 on); the codec
//	                    lets every number through
//	Uint128, Int128, Char   u128, i128, char
//	string, []byte      string, bytes
//	[]T, [N]T           list, array; [N]byte is N bytes
//	map[K]V             map, written in ascending order of the keys
//	*T                  option<T>
//	struct{}            unit
//	struct              struct, all fields in order
//	struct with =N tags enum, see below
//
// Everything else is refused when the plan is made: int and uint, whose width differs between
// platforms, interfaces, functions, channels, and structs with fields that are not exported.
//
// An enum is a struct of pointers of which exactly one is set. Each has its discriminant in its
// tag and points to the variant's payload:
//
//	type Result struct {
//		Succeeded *struct{} `postcard:"=0"`
//		Failed    *Failure  `postcard:"=1"`
//		Message   *string   `postcard:"=2,max=1024"`
//	}
//
// # Limits
//
// Each slice, string and map must have a limit in the tag of the field it belongs to; a plan
// without it is an error. max=N bounds the items, or the bytes of a string or byte slice; elem=N
// does so for what is inside of that, and may be repeated to go further in; key=N is for the keys
// of a map:
//
//	Name   string            `postcard:"max=64"`
//	Blocks [][]byte          `postcard:"max=8,elem=4096"`
//	Grid   [][]uint16        `postcard:"max=8,elem=8"`
//	Env    map[string]string `postcard:"max=64,key=128,elem=4096"`
//
// Limits hold in both directions, and MaxSize adds them up. Options bounds depth and memory besides. A length is compared
// with its limit and with what is left of the input before anything is allocated, so decoding
// allocates at most Options.MaxAlloc and the length of the input, whatever the input says.
//
// # Strict and lenient
//
// The decoder is strict: it takes just the bytes that Marshal writes. It refuses a varint longer
// than needed, a char that is not exactly one character, map keys repeated or out of order, and
// bytes after the value, all of which the reference accepts; Options.Lenient accepts them too.
// Under the strict decoder two different inputs are never the same value, and a value decoded and
// encoded again has the bytes it came from. Empty lists, maps and byte slices decode to nil.
//
// No input makes the decoder panic. Errors are of type *Error and name the field, never its value.
// The package starts no goroutines and all its functions may be called by many at once.
package postcard
