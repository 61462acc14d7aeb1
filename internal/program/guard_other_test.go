//go:build unix && !linux

package program

func wantCore() error { return nil }

func namespaces() string { return "skip: this system has none" }
