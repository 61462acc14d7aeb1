package edges_test

import (
	_ "example.com/bad/internal/edges"
	_ "example.com/bad/internal/edges/edgestest"
	_ "example.com/bad/internal/output" // want import "internal/edges may not import internal/output"
	_ "github.com/quic-go/quic-go"      // want driver "imports github.com/quic-go/quic-go"
)
