package main

import "fmt"

// What is kept of one output: its beginning, where the cause often stands, and
// its end, where the verdict does.
const (
	clipHead = 8 << 10
	clipTail = 24 << 10
)

// A clip keeps the beginning and the end of an output of any length. It holds at most
// clipHead + 2*clipTail bytes.
type clip struct {
	head, tail []byte
	dropped    int
}

// add appends output and returns by how much the clip's size has changed.
func (c *clip) add(output string) int {
	before := c.size()
	room := min(clipHead-len(c.head), len(output))
	c.head = append(c.head, output[:room]...)
	c.tail = append(c.tail, output[room:]...)
	if excess := len(c.tail) - clipTail; excess > clipTail {
		c.dropped += excess
		c.tail = append(c.tail[:0], c.tail[excess:]...)
	}
	return c.size() - before
}

func (c *clip) size() int { return len(c.head) + len(c.tail) }

// String is the output, with a line in place of what was dropped.
func (c *clip) String() string {
	if c.dropped == 0 {
		return string(c.head) + string(c.tail)
	}
	return fmt.Sprintf("%s\n... %d bytes left out ...\n%s", c.head, c.dropped, c.tail)
}
