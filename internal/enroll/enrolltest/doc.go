// Package enrolltest has the suite that each enroll.Store passes, and a store in memory.
package enrolltest
