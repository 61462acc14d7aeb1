//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// nothing is the program that does nothing.
const nothing = "/bin/true"

// bubblewrap returns where bubblewrap is, and installs it where that can be done.
func bubblewrap(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("bwrap"); err == nil {
		return path, nil
	}
	fmt.Fprintln(os.Stderr, "installing bubblewrap…")
	out, err := exec.CommandContext(ctx, "apt-get", "install", "-y", "bubblewrap").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bubblewrap is what sandboxes are measured against, and is not there; install it, as with apt-get install bubblewrap: %w: %s", err, out)
	}
	return exec.LookPath("bwrap")
}

// bubbleArgs are the namespaces and mounts of a sandbox of ours, as far as bubblewrap makes them.
func bubbleArgs(folder string) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup", "--hostname", "forgeyard",
		"--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
		"--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/run",
	}
	for _, pattern := range []string{"/bin", "/sbin", "/lib*", "/opt", "/etc/ssl", "/etc/alternatives", "/etc/ld.so.*", "/etc/java-*", "/etc/ca-certificates*"} {
		found, _ := filepath.Glob(pattern) // a good pattern has no error
		for _, path := range found {
			if link, err := os.Readlink(path); err == nil {
				args = append(args, "--symlink", link, path)
				continue
			}
			args = append(args, "--ro-bind", path, path)
		}
	}
	return append(args, "--bind", folder, "/work", "--bind", filepath.Join(folder, "tmp"), "/tmp", "--remount-ro", "/", "--chdir", "/work", nothing)
}

// bubble is the program in bubblewrap's sandbox, from fork to wait.
func (y *spawnYard) bubble(ctx context.Context) (time.Duration, error) {
	folder, err := workFolder(y.folder)
	if err != nil {
		return 0, err
	}
	took, err := ran(exec.CommandContext(ctx, y.bwrap, bubbleArgs(folder)...))
	if err != nil {
		return 0, fmt.Errorf("bubblewrap: %w", err)
	}
	return took, os.RemoveAll(folder)
}

// plain is the program alone.
func (y *spawnYard) plain(ctx context.Context) (time.Duration, error) {
	return ran(exec.CommandContext(ctx, nothing))
}

func ran(cmd *exec.Cmd) (time.Duration, error) {
	cmd.Stderr = os.Stderr
	begun := time.Now()
	err := cmd.Run()
	return time.Since(begun), err
}
