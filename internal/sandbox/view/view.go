// Package view is what the inside of a sandbox sees of files: a root of its own that holds what work needs and nothing else.
//
//	/            tmpfs, read-only once sealed; /bin /sbin /lib* as links or binds
//	/usr /opt …  the host's, read-only, no set-user-id bits, no devices
//	/etc         written by us, and a few folders of the host's
//	/proc        fresh, of this pid namespace, others' processes hidden, parts masked or read-only
//	/dev         null zero full random urandom, pts of its own, shm of its own size, links
//	/work        the attempt's folder; /tmp is its folder tmp
//	/run/forgeyard/secrets   in memory, for secrets that are files
//
// New decides what that is to be: a function of options and of what a Host has, without a mount. Build, Attach and Seal
// carry it out, in this order and in the init half of a sandbox only:
//
//	New (launcher) → Open (launcher) → Build (pid 1, before an order) → Attach (with the order) → Seal
//
// Build refuses unless its process is pid 1 in a mount namespace other than the host's, because the same calls would take
// the host's root apart. Everything is addressed by descriptors from the first mount on, so that no link that work or a
// neighbour plants can bend a path. Nothing here drops privileges: package confine does, after Seal, and from then on the
// kernel refuses changes of mounts.
//
// The package starts no goroutine.
package view

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Where things are inside (D10, D11).
const (
	WorkDir    = "/work"
	HomeDir    = WorkDir + "/home"
	TempDir    = "/tmp"
	ShmDir     = "/dev/shm"
	PtsDir     = "/dev/pts"
	SecretsDir = "/run/forgeyard/secrets"
)

// Bounds and defaults.
const (
	MaxBinds       = 512 // of a plan
	DefaultShm     = 64 * forge.MiB
	DefaultSecrets = 1 * forge.MiB
	rootBytes      = 8 * forge.MiB // of the root's own files: those of /etc
	rootInodes     = 4096
	secretsInodes  = 1024
)

// Options are what a view is made for.
type Options struct {
	ReadOnly []Bind        // what configuration adds; its sources must exist
	Hide     []string      // absolute paths of the host that no bind may show: the agent's state and keys
	Network  forge.Network // with NetworkHost the host's resolv.conf is copied
	UID, GID int           // of steps, as seen inside
	Mapped   bool          // pid 1 has ids of its own: sources that others cannot reach are handed over open
	HostNS   Namespace     // the mount namespace that Build must not find itself in
	Shm      forge.Bytes   // bound of /dev/shm; 0 means DefaultShm
	Secrets  forge.Bytes   // bound of SecretsDir; 0 means DefaultSecrets
	Switches Switches
}

// Namespace identifies a namespace of this machine.
type Namespace struct {
	Dev, Ino uint64
}

// Bind shows a file or a folder of the host, with all that is mounted below it, read-only.
type Bind struct {
	Source string // absolute, on the host
	Target string // absolute, inside; "" means the same
	File   bool   // New sets it: the source is not a folder
	Handed bool   // New sets it: the launcher opens it and hands it over
}

// Plan is a view decided on. It travels to the init half as JSON.
type Plan struct {
	Folders  []Folder // parents first
	Files    []File
	Links    []Link
	Binds    []Bind   // outer ones first
	Devices  []string // names in /dev, bound from the host's
	Hide     []string // inside: folders that are covered by an empty one
	Masks    []string // below /proc: covered
	ReadOnly []string // below /proc: read-only
	Shm      forge.Bytes
	Secrets  forge.Bytes
	UID, GID int
	HostNS   Namespace
	Switches Switches
}

// Folder is made in the root.
type Folder struct {
	Path string
	Mode uint32 // permission bits, with the sticky one as in stat
}

// File is written into the root, readable by all.
type File struct {
	Path    string
	Content []byte
}

// Link is a symbolic link in the root.
type Link struct {
	Path   string
	Target string
}

// ErrNotInside says that Build was called where it would take apart the host's own root.
var ErrNotInside = errors.New("view: refused outside a sandbox's init half")
