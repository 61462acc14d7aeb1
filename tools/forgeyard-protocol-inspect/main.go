// Command forgeyard-protocol-inspect shows what is on the wire between agents and daemons, as names and values.
//
//	forgeyard-protocol-inspect [-json] vector FILE [ID]   golden vectors: all of a file, or one
//	forgeyard-protocol-inspect [-json] frame HEX          one frame, header and all
//	forgeyard-protocol-inspect [-json] body TYPE HEX      a body alone; TYPE as in 0201, or 0201.2 for schema 2
//	forgeyard-protocol-inspect [-json] stream FILE        a captured stream from its first byte: header, then frames
//	forgeyard-protocol-inspect [-json] types              the registry of this build
//
// HEX may have spaces and line breaks in it. HEX and FILE may be - for the standard input. With -json each thing is one
// line of JSON.
//
// Values of secrets are never shown, in no form and on no path: they print as [secret], and an input that does not
// decode is not shown at all. Everything else is; captures belong to tests with made-up data.
//
// Exit codes: 0 everything was decoded; 1 the input is not what it should be (what, where and what to do is on the
// standard error, and what came before it on the standard output); 2 the command line is wrong; 3 a file cannot be read.
package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/inspect"
)

// The exit codes.
const (
	exitDecoded = 0
	exitInput   = 1
	exitUsage   = 2
	exitFile    = 3
)

const usage = `usage: forgeyard-protocol-inspect [-json] COMMAND

  vector FILE [ID]   golden vectors: all of a file, or one
  frame HEX          one frame, header and all
  body TYPE HEX      a body alone; TYPE as in 0201, or 0201.2 for schema 2
  stream FILE        a captured stream from its first byte
  types              the registry of this build

HEX and FILE may be - for the standard input.
exit codes: 0 decoded, 1 the input is wrong, 2 the command line is wrong, 3 a file cannot be read
`

// maxInput bounds what is read into memory. A stream is not.
const maxInput = 16 << 20

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is one invocation.
type command struct {
	in   io.Reader
	out  io.Writer
	json bool
}

// usageError is a wrong command line, fileError a file that cannot be read.
type (
	usageError struct{ error }
	fileError  struct{ error }
)

func run(args []string, in io.Reader, out, errs io.Writer) int {
	flags := flag.NewFlagSet("forgeyard-protocol-inspect", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage) }
	asJSON := flags.Bool("json", false, "one line of JSON for each thing")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDecoded
		}
		return exitUsage
	}
	c := command{in: in, out: out, json: *asJSON}
	err := c.do(flags.Args())
	if err == nil {
		return exitDecoded
	}
	fmt.Fprintf(errs, "forgeyard-protocol-inspect: %v\n", err)
	switch {
	case errors.As(err, new(usageError)):
		fmt.Fprint(errs, usage)
		return exitUsage
	case errors.As(err, new(fileError)):
		return exitFile
	}
	return exitInput
}

func (c command) do(args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("no command")}
	}
	name, args := args[0], args[1:]
	switch {
	case name == "vector" && (len(args) == 1 || len(args) == 2):
		return c.vectors(args)
	case name == "frame" && len(args) == 1:
		return c.frame(args[0])
	case name == "body" && len(args) == 2:
		return c.body(args[0], args[1])
	case name == "stream" && len(args) == 1:
		return c.stream(args[0])
	case name == "types" && len(args) == 0:
		return c.types()
	}
	return usageError{fmt.Errorf("%q does not take these arguments, or is no command", name)}
}

// show prints one thing.
func (c command) show(n inspect.Node) {
	if c.json {
		named := inspect.Node{Shape: inspect.Struct, Kids: []inspect.Node{n}}
		fmt.Fprintf(c.out, "%s\n", named.JSON())
		return
	}
	fmt.Fprint(c.out, n.Text())
}

func (c command) vectors(args []string) error {
	data, err := c.read(args[0])
	if err != nil {
		return err
	}
	f, err := inspect.ParseVectors(data)
	if err != nil {
		return fmt.Errorf("%s: %w; give a file of protocols/vectors", args[0], err)
	}
	found := false
	for _, v := range f.Vectors {
		if len(args) == 2 && v.ID != args[1] {
			continue
		}
		found = true
		node, err := f.Tree(v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.ID, err)
		}
		node.Name = v.ID + " " + node.Name
		c.show(node)
	}
	if !found {
		return fmt.Errorf("%s has no vector %q; without an id all of them are shown", args[0], args[1])
	}
	return nil
}

func (c command) frame(text string) error {
	raw, err := c.hex(text)
	if err != nil {
		return err
	}
	node, err := inspect.Frame(raw)
	if err != nil {
		return err
	}
	c.show(node)
	return nil
}

func (c command) body(typeText, text string) error {
	tag, err := parseTag(typeText)
	if err != nil {
		return usageError{err}
	}
	raw, err := c.hex(text)
	if err != nil {
		return err
	}
	node, err := inspect.Body(tag, raw)
	if err != nil {
		return err
	}
	c.show(node)
	return nil
}

func parseTag(text string) (protocol.Tag, error) {
	typeText, schemaText, given := strings.Cut(text, ".")
	if !given {
		schemaText = "1"
	}
	id, err := strconv.ParseUint(typeText, 16, 16)
	schema, err2 := strconv.ParseUint(schemaText, 10, 8)
	if err := errors.Join(err, err2); err != nil {
		return protocol.Tag{}, fmt.Errorf("%q is no type: four hexadecimal digits and perhaps a schema, as in 0201 or 0201.2", text)
	}
	return protocol.Tag{Type: protocol.TypeID(id), Schema: uint8(schema)}, nil
}

func (c command) stream(name string) error {
	if name == "-" {
		return inspect.Stream(c.in, c.show)
	}
	f, err := os.Open(name)
	if err != nil {
		return fileError{err}
	}
	defer f.Close()
	return inspect.Stream(f, c.show)
}

// types prints the registry. It is the same table as in protocols/internal/agent-daemon.md.
func (c command) types() error {
	for _, info := range protocol.Registry() {
		if c.json {
			fmt.Fprintf(c.out, `{"type":"%04x","name":%q,"schema":%d,"family":%q,"to":%q,"max":%d}`+"\n",
				uint16(info.ID), info.Name, info.Schema, info.Family, info.To, info.Max)
			continue
		}
		fmt.Fprintf(c.out, "%04x  %-22s schema %d  %-12v  %-9v  at most %d bytes\n",
			uint16(info.ID), info.Name, info.Schema, info.Family, info.To, info.Max)
	}
	return nil
}

// read returns the whole of a file or of the standard input.
func (c command) read(name string) ([]byte, error) {
	var r io.Reader = c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fileError{err}
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fileError{err}
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s has more than %d bytes; take the part that matters", name, maxInput)
	}
	return data, nil
}

// hex decodes an argument, or the standard input.
func (c command) hex(text string) ([]byte, error) {
	if text == "-" {
		data, err := c.read(text)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	digits := bytes.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, []byte(text))
	raw := make([]byte, hex.DecodedLen(len(digits)))
	n, err := hex.Decode(raw, digits)
	if err != nil {
		return nil, fmt.Errorf("at digit %d: not hexadecimal, or an odd number of digits; give two digits for each byte", 2*n)
	}
	return raw, nil
}
