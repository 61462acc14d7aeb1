package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxListItems bounds a list in settings.
const MaxListItems = 256

var (
	durationType = reflect.TypeFor[time.Duration]()
	bytesType    = reflect.TypeFor[forge.Bytes]()
	coresType    = reflect.TypeFor[forge.MilliCPU]()
)

// setText stores the value that a text stands for.
func setText(into reflect.Value, text string) error {
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch into.Type() {
	case durationType:
		return setDuration(into, text)
	case bytesType:
		return setBytes(into, text)
	case coresType:
		return setCores(into, text)
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", clip(text))
		}
		into.SetBool(text == "true")
	case reflect.Int, reflect.Uint16, reflect.Uint32:
		return setWhole(into, text)
	default:
		panic("config: no text for " + into.Type().String())
	}
	return nil
}

// setWhole stores a number that is zero or more.
func setWhole(into reflect.Value, text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a whole number from 0 to %d", clip(text), math.MaxInt32)
	}
	if into.CanInt() {
		into.SetInt(int64(n))
		return nil
	}
	if into.OverflowUint(n) {
		return fmt.Errorf("%d is too large", n)
	}
	into.SetUint(n)
	return nil
}

func setDuration(into reflect.Value, text string) error {
	d, err := forge.ParseDuration(text)
	into.SetInt(int64(d))
	return err
}

func setBytes(into reflect.Value, text string) error {
	n, err := forge.ParseBytes(text)
	into.SetUint(uint64(n))
	return err
}

func setCores(into reflect.Value, text string) error {
	n, err := forge.ParseCPU(text)
	into.SetUint(uint64(n))
	return err
}

// A FileRef is the path of a file that holds a key, a certificate or a token. Empty means that none is named.
type FileRef string

// secretMarks are parts of texts that are secrets and no paths.
var secretMarks = []string{"-----BEGIN", "PRIVATE KEY", "fy_enroll_", "fy_admin_", "fy_token_", "\n"}

// maxPathPart bounds one part of a path, as file systems do; a longer one is no path.
const maxPathPart = 255

// UnmarshalText takes a path and refuses what looks like the content of a file.
func (f *FileRef) UnmarshalText(text []byte) error {
	s := string(text)
	for _, mark := range secretMarks {
		if strings.Contains(s, mark) {
			return errInline
		}
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == '\\' }) {
		if len(part) > maxPathPart {
			return errInline
		}
	}
	*f = FileRef(s)
	return nil
}

var errInline = errors.New("this looks like the secret itself; write it into a file that only this program may read and name the file here")

// clip keeps a message short, whatever the input was.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
