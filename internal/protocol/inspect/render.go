package inspect

import (
	"encoding/json"
	"strings"
)

// Text renders trees as indented lines.
func (n Node) Text() string {
	var out strings.Builder
	n.text(&out, 0)
	return out.String()
}

func (n Node) text(out *strings.Builder, depth int) {
	out.WriteString(strings.Repeat("  ", depth))
	name := n.Name
	if name == "" {
		name = "-"
	}
	out.WriteString(name)
	switch n.Shape {
	case None:
		out.WriteString(": none")
	case Text, Plain:
		out.WriteString(": " + oneLine(n.Value))
	case List:
		if len(n.Kids) == 0 {
			out.WriteString(": empty")
		}
	}
	out.WriteByte('\n')
	for _, kid := range n.Kids {
		kid.text(out, depth+1)
	}
}

// oneLine keeps what a peer wrote from moving the cursor of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '�'
		}
		return r
	}, s)
}

// JSON renders a tree as an object with its fields in order.
func (n Node) JSON() []byte {
	var out strings.Builder
	n.json(&out)
	return []byte(out.String())
}

func (n Node) json(out *strings.Builder) {
	switch n.Shape {
	case Text:
		out.WriteString(quote(n.Value))
	case Plain:
		out.WriteString(n.Value)
	case None:
		out.WriteString("null")
	case List:
		n.jsonKids(out, '[', ']')
	case Struct:
		n.jsonKids(out, '{', '}')
	}
}

func (n Node) jsonKids(out *strings.Builder, begin, end byte) {
	out.WriteByte(begin)
	for i, kid := range n.Kids {
		if i > 0 {
			out.WriteByte(',')
		}
		if begin == '{' {
			out.WriteString(quote(kid.Name) + ":")
		}
		kid.json(out)
	}
	out.WriteByte(end)
}

// quote cannot fail: every string has a JSON form.
func quote(s string) string {
	quoted, _ := json.Marshal(s)
	return string(quoted)
}
