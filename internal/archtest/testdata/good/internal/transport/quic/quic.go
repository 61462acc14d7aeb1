// Package quic is the home of quic-go.
package quic

import _ "github.com/quic-go/quic-go"
