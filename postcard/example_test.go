package postcard_test

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/forgeyard/forgeyard/postcard"
)

// A message is an ordinary struct. Everything that could grow has its limit in the tag.
type Report struct {
	Job     [16]byte          // sixteen bytes as they are
	Number  uint64            // varint
	Parent  *uint64           // option
	Result  Result            // enum
	Outputs []Output          `postcard:"max=512"`
	Labels  map[string]string `postcard:"max=16,key=64,elem=256"`
	Lines   []string          `postcard:"max=100,elem=1024"`
}

type Output struct {
	Digest [32]byte
	Size   uint64
}

// Result is an enum: exactly one of its pointers is set.
type Result struct {
	Succeeded *struct{} `postcard:"=0"`
	Failed    *Failure  `postcard:"=1"`
	Cancelled *string   `postcard:"=2,max=256"`
}

type Failure struct {
	ExitCode int32
	Signal   *uint8
}

func Example() {
	wire, err := postcard.Marshal(Report{
		Number:  300,
		Result:  Result{Failed: &Failure{ExitCode: -1}},
		Outputs: []Output{{Size: 5}},
		Lines:   []string{"make: *** [all] Error 1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var report Report
	if err := postcard.Unmarshal(wire, &report); err != nil {
		fmt.Println(err)
		return
	}
	switch result := report.Result; {
	case result.Succeeded != nil:
		fmt.Println("succeeded")
	case result.Failed != nil:
		fmt.Println("failed with", result.Failed.ExitCode)
	case result.Cancelled != nil:
		fmt.Println("cancelled:", *result.Cancelled)
	}
	fmt.Println(len(wire), "bytes,", report.Number, report.Lines[0])
	// Output:
	// failed with -1
	// 82 bytes, 300 make: *** [all] Error 1
}

// Errors tell what was wrong and where, in a form programs can test.
func ExampleError() {
	wire, _ := postcard.Marshal(struct{ Number uint16 }{7})
	err := postcard.Unmarshal(append(wire, 0), new(struct{ Number uint16 }))
	fmt.Println(errors.Is(err, postcard.ErrTrailing))

	_, err = postcard.Marshal(Report{Lines: []string{"\xff"}, Result: Result{Succeeded: &struct{}{}}})
	var where *postcard.Error
	fmt.Println(errors.As(err, &where), where.Path)
	fmt.Println(err)
	// Output:
	// true
	// true postcard_test.Report.Lines[0]
	// postcard: encode postcard_test.Report.Lines[0]: string is not UTF-8
}

// Take reads values that stand one after another.
func ExampleTake() {
	stream, _ := postcard.Append(nil, Output{Size: 1})
	stream, _ = postcard.Append(stream, Output{Size: 2})
	for len(stream) > 0 {
		var out Output
		rest, err := postcard.Take(stream, &out)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Size)
		stream = rest
	}
	// Output:
	// 1
	// 2
}

// Lenient decoding takes what the reference takes; here a varint longer than needed.
func ExampleOptions() {
	var v struct{ Number uint16 }
	wire := []byte{0x80 | 7, 0}
	fmt.Println(postcard.Unmarshal(wire, &v))
	fmt.Println(postcard.Options{Lenient: true}.Unmarshal(wire, &v), v.Number)
	// Output:
	// postcard: decode struct { Number uint16 }.Number at byte 0: varint longer than its value needs
	// <nil> 7
}

// The schema is what must not change once a message is released; its hash freezes it.
func ExampleSchema() {
	schema, err := postcard.Schema(reflect.TypeFor[Result]())
	fmt.Println(schema, err)
	// Output:
	// enum{Succeeded=0,Failed(struct{ExitCode:i32,Signal:option<u8>})=1,Cancelled(string<max=256>)=2} <nil>
}

// A type can also be given as text, which serves tools that show what is on the wire.
func ExampleParseType() {
	t, err := postcard.ParseType("struct{name:string,next:option<@Next>}", map[string]string{
		"Next": "enum{Stop,Wait(u32)}",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := postcard.Value{Type: t}
	fmt.Println(postcard.Unmarshal([]byte{2, 'h', 'i', 1, 1, 30}, &v))
	fields := v.V.([]any)
	fmt.Println(fields[0], *fields[1].(*any))
	// Output:
	// <nil>
	// hi {Wait 30}
}
