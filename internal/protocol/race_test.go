//go:build race

package protocol_test

// raceFactor is by how much the race detector makes allocations larger.
const raceFactor = 2
