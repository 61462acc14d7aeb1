// Package logs keeps the logs of attempts on the daemon's disk: frames are appended once and in order, a log is sealed,
// and it is read from any frame on, also while it grows.
//
// A log is a folder of segments, each at most SegmentBytes long and named after its first frame:
//
//	logs/<attempt>/00000000000000000001       frames 1 to n
//	logs/<attempt>/00000000000000000001.idx   where to begin reading it, written when the segment is full or sealed
//
//	segment   "FYLOG" 0 0 1 | frame …
//	frame     kind u8, length u24 | CRC-32C of all the rest u32 | sequence u64 | wall time i64 | bytes      (big-endian)
//
// What is stored of a log is what its row in the database says: the first frame that is missing, the bytes, and their
// hash. An append writes to the segment, waits for the disk, and then moves the row in one transaction, so the row never
// says more than the disk has. What a segment has beyond the row, torn or whole, is what a crash left: it is not read, and
// it is cut before the next append. A row that says more than the segments have is corruption: it is reported and nothing
// is appended.
//
// It refuses frames of another runner's attempt, frames that would leave a hole, frames of a sealed log, and bytes beyond
// the quota of an attempt. It does not look into frames. It does not decide when a log may be sealed or closed: those are
// rules of package authority.
//
// The store starts no goroutine but in Run, whose caller owns it. Appends to one log take turns; appends to several logs,
// readers and followers do not wait for each other, so a slow follower never holds up what comes in. Logs that are remembered
// are more than files that are open: a log gives its file back where there are many.
package logs
