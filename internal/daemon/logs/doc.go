// Package logs keeps the logs of attempts on the daemon's disk: frames are appended once and in order, a log is sealed,
// and it is read from any frame on, also while it grows.
//
// A log is a folder of segments, each at most SegmentBytes long and named after its first frame:
//
//	logs/<attempt>/00000000000000000001       frames 1 to n
//	logs/<attempt>/00000000000000000001.idx   where to begin reading it, written when the segment is full or sealed
//	logs/<attempt>/00000000000000000001.zst   instead of both, a while later: the segment in Zstandard frames, and its index
//
//	segment   "FYLOG" 0 0 1 | frame …
//	frame     kind u8, length u24 | CRC-32C of all the rest u32 | sequence u64 | wall time i64 | bytes      (big-endian)
//
// What is stored of a log is what its row in the database says: the first frame that is missing, the bytes, and their
// hash: BLAKE3 over the bytes of all frames, of every kind, by their numbers, as the runner sent them. Neither heads nor
// compression are part of it. An append writes to the segment, waits for the disk, and then moves the row in one
// transaction, so the row never says more than the disk has. What a segment has beyond the row, torn or whole, is what a crash
// left: it is not read, and it is cut before the next append. A row that says more than the segments have is corruption: it is
// reported and nothing is appended.
//
// A segment that will not grow is packed: compressed in blocks of about 256 KiB that are decoded by themselves, each to exactly
// the length that the index says, so that a spoiled file is an error and never more bytes than it may have. The newest
// segment of a log that grows stays plain. The packed one is written beside the plain one and takes its place when it is on the
// disk; until then, and in logs of older daemons, the plain one is read.
//
// Readers hold a buffer or a block, whatever they read: frames from any number on, the workload's output from any byte on,
// the last lines, or a search through a bounded part.
//
// It refuses frames of another runner's attempt, frames that would leave a hole, frames of a sealed log, and bytes beyond
// the quota of an attempt. It looks into frames only to find lines and texts in them for a reader. It does not decide when a log may be sealed or closed: those are
// rules of package authority.
//
// The store starts no goroutine but in Run, whose caller owns it: there segments are packed, with a fifth of one processor.
// Appends to one log take turns; appends to several logs, readers and followers do not wait for each other, so a slow
// follower never holds up what comes in. Logs that are remembered are more than files that are open: a log gives its file
// back where there are many.
package logs
