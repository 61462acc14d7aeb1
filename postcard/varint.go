package postcard

import "encoding/binary"

// Varints are LEB128: seven bits a byte, low bits first, the high bit set on all but the last
// byte. A type of b bits takes at most ceil(b/7) bytes, and at that length its last byte may use
// only the bits that are left:
//
//	u16 3 bytes, last <= 0x03    u32 5, 0x0f    u64 10, 0x01    u128 19, 0x03
//
// Signed integers are zigzagged first (0, -1, 1, -2 become 0, 1, 2, 3).

const (
	bits64  = 64
	bits128 = 128
)

// varint reads the varint of an integer of the given width and tells how many bytes it took.
// Unless lenient, it refuses one that is longer than its value needs.
func varint(data []byte, width int, lenient bool) (v Uint128, n int, err error) {
	last := (width + 6) / 7
	for n < last {
		if n == len(data) {
			return v, n, ErrTruncated
		}
		b, shift := uint64(data[n]), 7*n
		n++
		if n == last && b >= 1<<(width-shift) {
			return v, n, ErrVarint
		}
		v.add(b&0x7f, shift)
		if b < 0x80 {
			if b == 0 && n > 1 && !lenient {
				return v, n, ErrNotMinimal
			}
			return v, n, nil
		}
	}
	return v, n, ErrVarint
}

// add sets seven bits. Go shifts by 64 and more give 0, so that the byte which straddles the two
// words needs no case of its own.
func (v *Uint128) add(bits uint64, shift int) {
	if shift < bits64 {
		v.Lo |= bits << shift
		v.Hi |= bits >> (bits64 - shift)
		return
	}
	v.Hi |= bits << (shift - bits64)
}

func appendVarint(dst []byte, v uint64) []byte {
	return binary.AppendUvarint(dst, v)
}

func appendVarint128(dst []byte, v Uint128) []byte {
	for v.Hi != 0 || v.Lo >= 0x80 {
		dst = append(dst, byte(v.Lo)|0x80)
		v.Lo = v.Lo>>7 | v.Hi<<57
		v.Hi >>= 7
	}
	return append(dst, byte(v.Lo))
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
