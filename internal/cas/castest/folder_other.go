//go:build !linux

package castest

const memory = ""
