package cgroup_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nightly makes the tests run that need a virtual machine.
const nightly = "FORGEYARD_NIGHTLY"

// guestKernel names the kernel to boot, where it is not the newest in /boot.
const guestKernel = "FORGEYARD_GUEST_KERNEL"

// guestPatience bounds the guest from its first instruction to its end.
const guestPatience = 5 * time.Minute

// All tests of this package on a kernel with version 2 alone, which the machine that builds
// may not have. The guest has this binary and nothing else on it.
func TestVersion2InAVirtualMachine(t *testing.T) {
	if os.Getenv(nightly) == "" {
		t.Skip("takes a virtual machine: make guest")
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("no virtual machine: apt-get install qemu-system-x86: ", err)
	}
	kernel := os.Getenv(guestKernel)
	if found, _ := filepath.Glob("/boot/vmlinuz-*"); kernel == "" && len(found) > 0 {
		kernel = found[len(found)-1]
	}
	if kernel == "" {
		t.Skip("no kernel in /boot: apt-get install linux-image-cloud-amd64, or set " + guestKernel)
	}
	ctx, cancel := context.WithTimeout(t.Context(), guestPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, qemu,
		"-m", "1024", "-smp", "2", "-nographic", "-nodefaults", "-no-reboot", "-serial", "stdio",
		"-kernel", kernel, "-initrd", guestDisk(t), "-append", "console=ttyS0 quiet panic=-1 "+asGuest+"=1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), guestVerdict+" 0 <nil>") {
		t.Fatalf("the guest: %v\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- SKIP"); n > 1 { // This one is skipped in there.
		t.Errorf("%d tests were skipped in the guest, want 1:\n%s", n, out)
	}
}

// guestDisk makes the guest's first file system, with a binary of these tests that needs no
// library as the program that the kernel starts.
func guestDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "init")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var disk bytes.Buffer
	for i, folder := range []string{"dev", "proc", "sys", "tmp"} {
		entry(&disk, i+1, folder, 0o40755, nil)
	}
	entry(&disk, 5, "init", 0o100755, program)
	entry(&disk, 0, "TRAILER!!!", 0, nil)
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, disk.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// entry writes one file of the archive format that kernels unpack ("newc"): thirteen numbers
// in hexadecimal, the name, the bytes, each padded to four.
func entry(to *bytes.Buffer, inode int, name string, mode int, data []byte) {
	to.WriteString("070701")
	for _, n := range []int{inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(to, "%08x", n)
	}
	to.WriteString(name + "\x00")
	pad(to)
	to.Write(data)
	pad(to)
}

// pad fills up to a multiple of four bytes.
func pad(to *bytes.Buffer) {
	for to.Len()%4 != 0 {
		to.WriteByte(0)
	}
}
