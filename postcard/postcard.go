package postcard

import (
	"reflect"
	"sync/atomic"
)

// Options loosen or tighten a call. The zero value is what the functions of the package use.
type Options struct {
	// Lenient makes decoding accept what the reference accepts: varints longer than needed, a
	// char with more characters behind it, map keys in any order and repeated (the last wins),
	// and, in Unmarshal, bytes after the value. Limits hold all the same.
	Lenient bool

	// MaxDepth bounds how deeply options, lists, arrays, maps, structs and enums nest, in
	// either direction; 0 means DefaultMaxDepth, and no more than 10 000 is allowed.
	MaxDepth int

	// MaxAlloc bounds what decoding one value allocates to MaxAlloc bytes plus the length of
	// the input; 0 means DefaultMaxAlloc.
	MaxAlloc int
}

const (
	// DefaultMaxDepth is what Options.MaxDepth is if it is 0.
	DefaultMaxDepth = 128
	// DefaultMaxAlloc is what Options.MaxAlloc is if it is 0.
	DefaultMaxAlloc = 16 << 20

	// maxDepth keeps recursion far from the end of a goroutine's stack.
	maxDepth = 10_000
)

// Marshal returns the encoding of v, a value or a pointer to one. It refuses what no decoder
// would take back: a list over its limit, a string that is not UTF-8, an enum with no variant set.
func Marshal(v any) ([]byte, error) { return Options{}.Marshal(v) }

// Append appends the encoding of v to dst. On an error it returns dst as it was.
func Append(dst []byte, v any) ([]byte, error) { return Options{}.Append(dst, v) }

// Unmarshal decodes data, the whole of it and in the one form Marshal gives it, into the value v
// points to. It keeps no part of data: strings and byte slices are copied. Slices, maps and
// pointers in *v are replaced and never written through. After an error *v is of no use.
func Unmarshal(data []byte, v any) error { return Options{}.Unmarshal(data, v) }

// Take decodes one value from the front of data and returns the bytes after it, a part of data.
func Take(data []byte, v any) (rest []byte, err error) { return Options{}.Take(data, v) }

// Marshal is like the function Marshal.
func (o Options) Marshal(v any) ([]byte, error) {
	p, src, err := source(v)
	if err != nil {
		return nil, err
	}
	// As much room as last time: messages of a type tend to be of a size.
	dst, err := o.append(make([]byte, 0, p.size.Load()), p.root, src)
	if err != nil {
		return nil, err
	}
	p.size.Store(min(int64(len(dst)), maxHint))
	return dst, nil
}

// Append is like the function Append.
func (o Options) Append(dst []byte, v any) ([]byte, error) {
	p, src, err := source(v)
	if err != nil {
		return dst, err
	}
	return o.append(dst, p.root, src)
}

func (o Options) append(dst []byte, root *op, src reflect.Value) ([]byte, error) {
	e := encoder{buf: dst, depth: o.levels()}
	if err := e.value(root, src); err != nil {
		return dst, done(err, "encode", root)
	}
	return e.buf, nil
}

// Unmarshal is like the function Unmarshal; if lenient, it ignores bytes after the value.
func (o Options) Unmarshal(data []byte, v any) error {
	rest, err := o.Take(data, v)
	if err == nil && len(rest) > 0 && !o.Lenient {
		return &Error{Op: "decode", Offset: len(data) - len(rest), Err: ErrTrailing}
	}
	return err
}

// Take is like the function Take.
func (o Options) Take(data []byte, v any) (rest []byte, err error) {
	p, dst, err := target(v)
	if err != nil {
		return nil, err
	}
	d := decoder{data: data, depth: o.levels(), budget: o.memory() + len(data), lenient: o.Lenient}
	if err := d.value(p.root, dst); err != nil {
		return nil, done(err, "decode", p.root)
	}
	return data[d.off:], nil
}

func (o Options) levels() int {
	if o.MaxDepth <= 0 {
		return DefaultMaxDepth
	}
	return min(o.MaxDepth, maxDepth)
}

func (o Options) memory() int {
	if o.MaxAlloc <= 0 {
		return DefaultMaxAlloc
	}
	return min(o.MaxAlloc, 1<<30)
}

// plan is the root of a tree of ops.
type plan struct {
	root *op
	size atomic.Int64 // of the last encoding, a hint
}

const maxHint = 64 << 10

// source finds the plan of what is to be encoded and makes it addressable.
func source(v any) (*plan, reflect.Value, error) {
	switch v := v.(type) {
	case nil:
		return nil, reflect.Value{}, badValue("encode", "nil")
	case Value:
		return v.source()
	case *Value:
		if v != nil {
			return v.source()
		}
	}
	src := reflect.ValueOf(v)
	if src.Kind() == reflect.Pointer {
		if src.IsNil() {
			return nil, src, badValue("encode", "nil pointer")
		}
		p, err := planOf(src.Type().Elem())
		return p, src.Elem(), err
	}
	p, err := planOf(src.Type())
	if err != nil {
		return nil, src, err
	}
	addressable := reflect.New(src.Type()).Elem()
	addressable.Set(src)
	return p, addressable, nil
}

func target(v any) (*plan, reflect.Value, error) {
	dst := reflect.ValueOf(v)
	if dst.Kind() != reflect.Pointer || dst.IsNil() {
		return nil, dst, badValue("decode", "want a pointer that is not nil")
	}
	if v, ok := v.(*Value); ok {
		return v.source()
	}
	p, err := planOf(dst.Type().Elem())
	return p, dst.Elem(), err
}

func badValue(op, detail string) error {
	return &Error{Op: op, Offset: -1, Err: ErrType, Detail: detail}
}
