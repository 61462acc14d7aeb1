package postcard

// Uint128 is Rust's u128, a varint of at most 19 bytes. Only this very type is encoded so: a
// type defined from it (type ID Uint128) is an ordinary struct of two integers.
type Uint128 struct{ Hi, Lo uint64 }

// Int128 is Rust's i128 in two's complement: Hi holds the sign.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Char is Rust's char, a string of exactly one character. It is a type of its own because Go's
// rune is the same type as int32.
type Char rune

func (v Int128) zigzag() Uint128 {
	sign := uint64(v.Hi >> 63)
	return Uint128{Hi: (uint64(v.Hi)<<1 | v.Lo>>63) ^ sign, Lo: v.Lo<<1 ^ sign}
}

func (v Uint128) unzigzag() Int128 {
	sign := -(v.Lo & 1)
	return Int128{Hi: int64(v.Hi>>1 ^ sign), Lo: (v.Lo>>1 | v.Hi<<63) ^ sign}
}
