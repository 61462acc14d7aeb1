//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// ownGroup lets the end of the context end what git has started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
