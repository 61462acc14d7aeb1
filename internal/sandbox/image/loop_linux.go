package image

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	loopControl  = "/dev/loop-control"
	deviceFolder = "/dev/"
	// maxTries is how often a free device is asked for: between the answer and its use somebody else may take it.
	maxTries = 64
)

// attach makes a file a block device, which is one until its last user has closed it. flags are further ones.
func attach(file *os.File, flags uint32) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer func() { _ = control.Close() }()
	for range maxTries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		device, err := attachAt(deviceFolder+"loop"+strconv.Itoa(number), file, flags)
		if !errors.Is(err, unix.EBUSY) {
			return device, err
		}
	}
	return nil, errors.New("no loop device stays free for as long as it takes to use it")
}

func attachAt(path string, file *os.File, flags uint32) (*os.File, error) {
	how := os.O_RDWR
	if flags&unix.LO_FLAGS_READ_ONLY != 0 {
		how = os.O_RDONLY
	}
	device, err := os.OpenFile(path, how, 0)
	if err != nil {
		return nil, fmt.Errorf("loop device: %w", err)
	}
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Size: blockBytes}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | flags
	if err := unix.IoctlLoopConfigure(int(device.Fd()), &config); err != nil {
		return nil, errors.Join(fmt.Errorf("use %s: %w", path, err), device.Close())
	}
	return device, nil
}
