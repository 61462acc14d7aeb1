//go:build unix && !linux

package program

func namespaces() string { return "skip: this system has none" }
