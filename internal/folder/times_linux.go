package folder

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// epochSpec is Epoch for the system, as times of access and change.
var epochSpec = []unix.Timespec{{Sec: Epoch.Unix()}, {Sec: Epoch.Unix()}}

// fileTime gives a file its time by its descriptor, or by its name where the kernel is older than 5.8.
func fileTime(in *os.Root, name string, f *os.File) error {
	err := unix.UtimesNanoAt(int(f.Fd()), "", epochSpec, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return in.Chtimes(name, Epoch, Epoch)
	}
	return err
}

// linkTime gives a link its time.
func linkTime(in *os.Root, name string) error {
	dir, err := in.Open(".")
	if err != nil {
		return err
	}
	err = unix.UtimesNanoAt(int(dir.Fd()), name, epochSpec, unix.AT_SYMLINK_NOFOLLOW)
	return errors.Join(err, dir.Close())
}
