//go:build !race

package protocol_test

const raceFactor = 1
