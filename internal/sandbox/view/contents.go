package view

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// programs are the folders that programs and their libraries are in (D11).
var programs = []string{"/usr", "/opt"}

// settingsOfHost are what of the host's /etc work gets to see: certificates, the dynamic linker's, alternatives, names of
// services, and the like. Nothing in it tells of users, hosts or credentials.
var settingsOfHost = []string{
	"/etc/alternatives", "/etc/ca-certificates*", "/etc/crypto-policies", "/etc/fonts", "/etc/java-*", "/etc/ld.so.*",
	"/etc/magic", "/etc/mime.types", "/etc/pki", "/etc/protocols", "/etc/services", "/etc/ssl", "/etc/terminfo",
}

// leftOut are what those patterns find and work has no use for: libraries that the host forces on its programs.
var leftOut = []string{"/etc/ld.so.preload"}

// devices are bound one by one; the folder /dev is our own.
var devices = []string{"full", "null", "random", "urandom", "zero"}

// masked are parts of /proc that tell of the machine or reach into it. What is missing on a kernel is passed over.
var masked = []string{
	"acpi", "asound", "bus", "cmdline", "fs", "interrupts", "irq", "kallsyms", "kcore", "key-users", "keys", "kmsg",
	"kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "pressure", "sched_debug", "scsi", "sysrq-trigger",
	"timer_list", "timer_stats", "tty",
}

// settings are parts of /proc that a kernel's settings are written through.
var settings = []string{"sys"}

// notShown are never a bind's source.
var notShown = []string{"/proc", "/sys", "/dev"}

// ownPlaces are where the sandbox's own mounts are; no bind goes into, onto or over them.
var ownPlaces = []string{"/proc", "/sys", "/dev", WorkDir, TempDir, "/run", "/var/tmp"}

// ownFolders are in every root.
var ownFolders = []Folder{
	{"/dev", 0o755},
	{"/dev/pts", 0o755},
	{"/dev/shm", 0o755},
	{"/etc", 0o755},
	{"/proc", 0o555},
	{"/run", 0o755},
	{"/run/forgeyard", 0o755},
	{SecretsDir, 0o755},
	{"/sys", 0o555},
	{TempDir, 0o755},
	{"/var", 0o755},
	{WorkDir, 0o755},
}

type ownLink struct {
	Link
	Always bool // also where the host has no such target
}

var ownLinks = []ownLink{
	{Link{"/dev/fd", "/proc/self/fd"}, true},
	{Link{"/dev/ptmx", "pts/ptmx"}, true},
	{Link{"/dev/stdin", "/proc/self/fd/0"}, true},
	{Link{"/dev/stdout", "/proc/self/fd/1"}, true},
	{Link{"/dev/stderr", "/proc/self/fd/2"}, true},
	{Link{"/etc/localtime", "../usr/share/zoneinfo/UTC"}, false},
	{Link{"/etc/mtab", "../proc/self/mounts"}, true},
	{Link{"/etc/os-release", "../usr/lib/os-release"}, false},
	{Link{"/var/run", "../run"}, true},
	{Link{"/var/tmp", "../tmp"}, true},
}

// MachineID is the same in every sandbox: it must identify no machine.
const MachineID = "f0f0e7a4d0000000000000000000f0f0"

const maxResolvConf = 16 << 10

// ownFiles are the files of /etc that we write ourselves (D11).
func ownFiles(host Host, o Options) []File {
	resolver := []byte("# This job has no network. Every question is refused at once.\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
	if o.Network == forge.NetworkHost {
		real, _ := host.Real("/etc/resolv.conf")
		resolver = host.Read(real, maxResolvConf)
	}
	text := func(at, content string) File { return File{Path: at, Content: []byte(content)} }
	return []File{
		text("/etc/group", fmt.Sprintf("root:x:0:\nforgeyard:x:%d:\nnogroup:x:65534:\n", o.GID)),
		text("/etc/gitconfig", "[safe]\n\tdirectory = *\n"),
		text("/etc/host.conf", "multi on\n"),
		text("/etc/hostname", "forgeyard\n"),
		text("/etc/hosts", "127.0.0.1 localhost forgeyard\n::1 localhost ip6-localhost ip6-loopback\n"),
		text("/etc/machine-id", MachineID+"\n"),
		text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n"),
		text("/etc/passwd", passwd(host, o)),
		{Path: "/etc/resolv.conf", Content: resolver},
	}
}

func passwd(host Host, o Options) string {
	shell := "/bin/sh"
	if _, e := host.Real("/bin/bash"); e.Kind == IsFile {
		shell = "/bin/bash"
	}
	return fmt.Sprintf("root:x:0:0:root:/nonexistent:/bin/false\nforgeyard:x:%d:%d:Forgeyard:%s:%s\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		o.UID, o.GID, HomeDir, shell)
}
