// Package castest holds what implementations of cas have to pass, and stores and disks that fail on purpose.
package castest
