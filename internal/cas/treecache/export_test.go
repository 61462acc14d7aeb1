package treecache

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
)

var BootID = bootID

// SetHazards makes the file system one that cannot hold some trees.
func SetHazards(c *Cache, h tree.Hazards) { c.hazards = h }

// Age makes every tree one that was used longer ago.
func Age(c *Cache, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.trees {
		e.last = e.last.Add(-by)
	}
}
