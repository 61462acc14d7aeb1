//go:build !linux

package workspace_test

var helpers map[string]func()
