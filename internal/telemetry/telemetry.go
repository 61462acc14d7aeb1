// Package telemetry is how our programs speak about themselves: the set-up of slog, the keys of its attributes, log files
// that cannot fill a disk, and metrics whose names and labels are checked where they are made.
//
// It refuses metrics with labels whose values are not a closed list: a runner's or an attempt's id in a label would let
// the number of series grow without end. It starts no goroutine and knows nothing of what it reports about.
package telemetry
