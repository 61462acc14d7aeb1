package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// minEncoded is the least length of an encoded form. Shorter ones are too likely to be something else.
const minEncoded = 8

// maxStrings bounds the strings that are taken out of one JSON document.
const maxStrings = 4096

// wraps are the widths at which programs break base64.
var wraps = []int{64, 76}

// collector puts forms into a trie while there is room.
type collector struct {
	trie *automaton
	room int // bytes
}

// trim takes the white space around a value away: a program that reads it from a file or through a shell loses it.
func trim(value []byte) []byte { return bytes.TrimSpace(value) }

// add takes one form, and reports whether there was room for it.
func (c *collector) add(form []byte) bool {
	if len(form) > c.room {
		return false
	}
	c.room -= len(form)
	c.trie.insert(form)
	return true
}

// addLong takes a form if it has at least least bytes.
func (c *collector) addLong(form []byte, least int) {
	if len(form) >= least {
		c.add(form)
	}
}

// parts adds the forms in which a value is printed without being encoded.
func (c *collector) parts(value []byte) {
	value = trim(value)
	if len(value) < MinSecret {
		return
	}
	c.rewritten(value, MinSecret)
	for _, s := range jsonStrings(value) {
		part := trim([]byte(s))
		c.addLong(part, MinPart)
		c.rewritten(part, MinPart)
	}
}

// rewritten adds the lines of a value, and what shells and JSON writers make of the whole of it.
func (c *collector) rewritten(value []byte, least int) {
	if len(value) < least {
		return
	}
	if bytes.ContainsAny(value, "\r\n") {
		for line := range bytes.Lines(value) {
			c.addLong(trim(line), MinPart)
		}
		c.add(bytes.ReplaceAll(value, []byte("\r\n"), []byte("\n")))
	}
	for _, form := range [][]byte{
		bytes.Join(bytes.Fields(value), []byte(" ")), // echo $K
		ansiQuoted.replace(value),                    // set -x: $'…'
		singleQuoted.replace(value),                  // set -x: '…'
		jsonQuoted(value),
	} {
		if !bytes.Equal(form, value) {
			c.addLong(form, least)
		}
	}
}

// quoting is how a shell writes the inside of a quoted word.
type quoting struct{ *strings.Replacer }

func (q quoting) replace(value []byte) []byte { return []byte(q.Replace(string(value))) }

var (
	ansiQuoted   = quoting{strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)}
	singleQuoted = quoting{strings.NewReplacer(`'`, `'\''`)}
)

// jsonQuoted is the inside of a JSON string, as a writer leaves it that escapes only what it must.
func jsonQuoted(value []byte) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(value)); err != nil {
		return nil
	}
	text := bytes.TrimSpace(out.Bytes())
	return text[1 : len(text)-1]
}

// jsonStrings returns the string values of a JSON document, its names not among them. Anything else has none.
func jsonStrings(value []byte) []string {
	if len(value) == 0 || (value[0] != '{' && value[0] != '[') {
		return nil
	}
	var document any
	if json.Unmarshal(value, &document) != nil {
		return nil
	}
	return walk(nil, document)
}

func walk(found []string, value any) []string {
	if len(found) >= maxStrings {
		return found
	}
	switch v := value.(type) {
	case string:
		found = append(found, v)
	case []any:
		for _, item := range v {
			found = walk(found, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = walk(found, v[name])
		}
	}
	return found
}

// encodings adds what a value becomes within base64, hexadecimal digits and URLs.
func (c *collector) encodings(value []byte) {
	if len(trim(value)) < MinSecret {
		return
	}
	c.encoded(trim(value))
	if len(value) != len(trim(value)) {
		c.base64(value)
	}
	for _, s := range jsonStrings(trim(value)) {
		if len(s) >= MinPart {
			c.encoded(trim([]byte(s)))
		}
	}
}

func (c *collector) encoded(value []byte) {
	c.base64(value)
	digits := hex.EncodeToString(value)
	path := url.PathEscape(string(value))
	for _, form := range []string{
		digits, strings.ToUpper(digits),
		path, lowerEscapes(path), url.QueryEscape(string(value)), lowerEscapes(url.QueryEscape(string(value))),
	} {
		if form != string(value) {
			c.addLong([]byte(form), minEncoded)
		}
	}
}

// lowerEscapes writes the digits of %2F as some programs do.
func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], bytes.ToLower(out[i+1:i+3]))
		}
	}
	return string(out)
}

// base64 adds what does not depend on the bytes around a value, for each of the three places at which it may begin, and
// the whole with its padding and its usual line breaks for a value that is encoded alone.
func (c *collector) base64(value []byte) {
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			first := (before*8 + 5) / 6 // characters that hold bits of what stands before
			last := (before + len(value)) * 8 / 6
			if first < last {
				c.addLong([]byte(text[first:last]), minEncoded)
			}
		}
	}
	line := append(bytes.Clone(value), '\n') // echo $K | base64
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		c.alone(enc.EncodeToString(value))
		c.alone(enc.EncodeToString(line))
	}
}

func (c *collector) alone(text string) {
	c.addLong([]byte(text), minEncoded)
	for _, width := range wraps {
		for from := 0; len(text) > width && from < len(text); from += width {
			c.addLong([]byte(text[from:min(len(text), from+width)]), minEncoded)
		}
	}
}
