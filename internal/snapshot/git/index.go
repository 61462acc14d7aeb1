package git

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// indexOf writes the index of a commit that was just read into it: every entry without the stamps of a file. Git then
// compares contents the first time that it looks, and keeps the stamps that it finds where it may write. So one index is
// true in every folder that holds the files, whatever their times, owners and inodes.
//
//	index = "DIRC" · version 2 · count · entries · hash of all that
//	entry = ten numbers, all zero but the mode · id · length of the path · path · one to eight NULs
func indexOf(hashName string, entries []treeEntry) ([]byte, error) {
	const (
		stamps    = 40     // bytes of the ten numbers
		modeAt    = 24     // among them
		longPath  = 0x0fff // a length that stands for itself and all longer ones
		alignment = 8
	)
	var body []byte
	count := uint32(0)
	for _, e := range entries {
		if e.kind == "tree" {
			continue
		}
		id, err := hex.DecodeString(e.id)
		if err != nil {
			return nil, fmt.Errorf("id of %q: %w", e.path, err)
		}
		count++
		var numbers [stamps]byte
		binary.BigEndian.PutUint32(numbers[modeAt:], e.mode)
		start := len(body)
		body = append(append(body, numbers[:]...), id...)
		body = binary.BigEndian.AppendUint16(body, uint16(min(len(e.path), longPath)))
		body = append(body, e.path...)
		body = append(body, make([]byte, alignment-(len(body)-start)%alignment)...)
	}
	data := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), count)
	return seal(hashName, append(data, body...))
}
