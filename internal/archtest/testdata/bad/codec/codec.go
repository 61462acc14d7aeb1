// Package codec is public.
package codec

import (
	_ "example.com/bad/internal/leaf" // want import "codec may not import internal/leaf"
	_ "github.com/quic-go/quic-go"    // want import "not in the standard library" // want driver "imports github.com/quic-go/quic-go"
)
