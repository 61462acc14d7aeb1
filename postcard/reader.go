package postcard

import (
	"encoding/binary"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// fault is a decoding error before its path is known.
func fault(off int, err error) error { return &Error{Offset: off, Err: err} }

// enter goes one level down; whoever enters adds the level back when it is done. After an error
// nobody counts any more.
func (d *decoder) enter() error {
	if d.depth == 0 {
		return fault(d.off, ErrDepth)
	}
	d.depth--
	return nil
}

// level checks that there is a level for a value which has nothing inside.
func (d *decoder) level() error {
	if d.depth == 0 {
		return fault(d.off, ErrDepth)
	}
	return nil
}

// charge takes the memory of n items off the budget before they are made.
func (d *decoder) charge(n int, o *op) error {
	size := int(o.typ.Size())
	if size != 0 && n > d.budget/size {
		return &Error{Offset: d.off, Err: ErrLimit, Detail: "too much memory for one message"}
	}
	d.budget -= n * size
	return nil
}

func (d *decoder) byte() (byte, error) {
	if d.off == len(d.data) {
		return 0, fault(d.off, ErrTruncated)
	}
	b := d.data[d.off]
	d.off++
	return b, nil
}

// flag reads the one byte of a bool or of an option's tag.
func (d *decoder) flag(wrong error) (bool, error) {
	b, err := d.byte()
	if err == nil && b > 1 {
		err = fault(d.off-1, wrong)
	}
	return b == 1, err
}

func (d *decoder) varint(width int) (uint64, error) {
	// Most integers are small; the rest takes the general way.
	if d.off < len(d.data) && d.data[d.off] < 0x80 {
		d.off++
		return uint64(d.data[d.off-1]), nil
	}
	v, err := d.longVarint(width)
	return v.Lo, err
}

func (d *decoder) varint128() (Uint128, error) { return d.longVarint(bits128) }

func (d *decoder) longVarint(width int) (Uint128, error) {
	v, n, err := varint(d.data[d.off:], width, d.lenient)
	if err != nil {
		return Uint128{}, fault(d.off, err)
	}
	d.off += n
	return v, nil
}

// take gives the next n bytes of the input itself, not a copy.
func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.data)-d.off) {
		return nil, fault(d.off, ErrTruncated)
	}
	b := d.data[d.off : d.off+int(n)]
	d.off += int(n)
	return b, nil
}

// count reads the number of items of a list and compares it with the limit and with the input:
// items of at least that many bytes each must still fit. Nothing is allocated before.
func (d *decoder) count(limit uint64, least int) (int, error) {
	start := d.off
	n, err := d.varint(bits64)
	switch {
	case err != nil:
		return 0, err
	case n > limit:
		return 0, overLimit(start, limit)
	case least > 0 && n > uint64((len(d.data)-d.off)/least):
		return 0, fault(start, ErrTruncated)
	case n > math.MaxInt32:
		// Only lists of items without bytes come here.
		return 0, overLimit(start, math.MaxInt32)
	}
	return int(n), nil
}

// prefixed reads a length and that many bytes, still those of the input, and charges for the
// copy the caller is about to make.
func (d *decoder) prefixed(limit uint64) ([]byte, error) {
	n, err := d.count(limit, 1)
	if err != nil {
		return nil, err
	}
	if n > d.budget {
		return nil, &Error{Offset: d.off, Err: ErrLimit, Detail: "too much memory for one message"}
	}
	d.budget -= n
	return d.take(uint64(n))
}

func (d *decoder) text(limit uint64) ([]byte, error) {
	start := d.off
	b, err := d.prefixed(limit)
	if err == nil && !utf8.Valid(b) {
		err = fault(start, ErrUTF8)
	}
	return b, err
}

// char reads a string of one character. The reference takes up to four bytes and drops all but
// the first character; that is lenient.
func (d *decoder) char() (Char, error) {
	start := d.off
	n, err := d.varint(bits64)
	if err != nil {
		return 0, err
	}
	if n == 0 || n > utf8.UTFMax {
		return 0, fault(start, ErrChar)
	}
	b, err := d.take(n)
	if err != nil {
		return 0, err
	}
	r, size := utf8.DecodeRune(b)
	if !utf8.Valid(b) || size != len(b) && !d.lenient {
		return 0, fault(start, ErrChar)
	}
	return Char(r), nil
}

// float keeps every bit. Going through reflect's SetFloat would quiet a signalling NaN of 32 bits.
func (d *decoder) float(o *op, dst reflect.Value) error {
	if o.kind == kindF64 {
		b, err := d.take(8)
		if err == nil {
			dst.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		return err
	}
	b, err := d.take(4)
	if err == nil {
		setFloat32(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return err
}

func setFloat32(dst reflect.Value, f float32) {
	if p, ok := dst.Addr().Interface().(*float32); ok {
		*p = f
		return
	}
	// Converting between types of float32 keeps the bits.
	dst.Set(reflect.ValueOf(f).Convert(dst.Type()))
}

func overLimit(off int, limit uint64) error {
	return &Error{Offset: off, Err: ErrLimit, Detail: "at most " + strconv.FormatUint(limit, 10)}
}
