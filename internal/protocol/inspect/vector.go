package inspect

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// VectorFile is one file of golden vectors: those of one type, or those of stream headers.
type VectorFile struct {
	Type    string   `json:"type,omitempty"` // 0201; absent for stream headers
	Name    string   `json:"name"`
	Schema  uint8    `json:"schema,omitempty"`
	Vectors []Vector `json:"vectors"`
}

// Vector is one frame, or one stream header, with what it means. One of more than MaxHex bytes has instead of its hex
// its recipe: inflate the base64 of Deflate (RFC 1951), and compare with the digest.
type Vector struct {
	ID      string          `json:"id"`
	About   string          `json:"about"`
	Bytes   int             `json:"bytes"`
	Digest  string          `json:"blake3"`
	Hex     string          `json:"hex,omitempty"`
	Deflate string          `json:"deflate,omitempty"`
	Meaning json.RawMessage `json:"meaning,omitempty"`
}

// MaxHex is the longest vector that stands in its file byte for byte.
const MaxHex = 4 << 10

// maxVector bounds what a recipe may inflate to.
const maxVector = protocol.HeaderBytes + int64(protocol.MaxBody)

// NewVector returns the vector of some bytes.
func NewVector(id, about string, raw []byte, meaning Node) (Vector, error) {
	v := Vector{ID: id, About: about, Bytes: len(raw), Digest: digest.Of(raw).String()}
	if len(raw) <= MaxHex {
		v.Hex, v.Meaning = hex.EncodeToString(raw), meaning.JSON()
		return v, nil
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return v, err
	}
	if _, err := w.Write(raw); err != nil {
		return v, err
	}
	if err := w.Close(); err != nil {
		return v, err
	}
	v.Deflate = base64.StdEncoding.EncodeToString(out.Bytes())
	return v, nil
}

// ParseVectors reads a file.
func ParseVectors(data []byte) (VectorFile, error) {
	var f VectorFile
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, fmt.Errorf("read vectors: %w", err)
	}
	if len(f.Vectors) == 0 {
		return f, errors.New("read vectors: there are none in it")
	}
	return f, nil
}

// Raw returns the bytes of a vector, checked against its length and digest.
func (v Vector) Raw() ([]byte, error) {
	raw, err := v.unpack()
	if err != nil {
		return nil, fmt.Errorf("vector %s: %w", v.ID, err)
	}
	if len(raw) != v.Bytes || digest.Of(raw).String() != v.Digest {
		return nil, fmt.Errorf("vector %s: its bytes are not those of its length and digest", v.ID)
	}
	return raw, nil
}

func (v Vector) unpack() ([]byte, error) {
	if v.Deflate == "" {
		return hex.DecodeString(v.Hex)
	}
	packed := base64.NewDecoder(base64.StdEncoding, strings.NewReader(v.Deflate))
	return io.ReadAll(io.LimitReader(flate.NewReader(packed), maxVector+1))
}

// Tree takes the vector apart.
func (f VectorFile) Tree(v Vector) (Node, error) {
	raw, err := v.Raw()
	if err != nil {
		return Node{}, &Error{What: err.Error(), Do: "get the file again: vectors are never edited", Err: err}
	}
	if f.Type != "" {
		return Frame(raw)
	}
	var node Node
	err = Stream(bytes.NewReader(raw), func(n Node) { node = n })
	return node, err
}
