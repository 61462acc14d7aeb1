//go:build unix

package process

import (
	"os"
	"strconv"
	"syscall"
)

// placeOf tells a folder from its copies on the same machine.
func placeOf(folder string) (string, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(stat.Dev), 36) + "-" + strconv.FormatUint(uint64(stat.Ino), 36), nil
	}
	return "0", nil
}
