package launch

import "os"

// InitArg is the argument that makes an init half.
const InitArg = initArg

// CopyProgram copies this program into memory.
var CopyProgram = copyProgram

// Program calls start with what a launcher that has a copy starts, and with the files that it gets.
func Program(copied *os.File, files []*os.File, start func(path string, files []*os.File) error) error {
	c := &cloner{}
	c.copied.Store(copied)
	err := c.program(files, start)
	if err == nil && c.copied.Load() == nil {
		return os.ErrPermission // it was given up
	}
	return err
}
