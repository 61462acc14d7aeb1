//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Feature is something of the kernel that a wall needs.
type Feature struct {
	Name  string // that of the wall
	Have  bool
	Grade int    // Landlock's interface; else 0
	Why   string // why it is missing, as a sentence
	Mend  string // a command that mends it; "" where none does
}

// The features, named as the levels of package sandbox that need them. FeatureMounts is needed by every one of them.
const (
	FeatureMounts         = "mount-namespace"
	FeatureUsers          = "user-namespace"
	FeatureHiddenProc     = "hidden-proc"
	FeatureSeccomp        = "seccomp"
	FeatureLandlock       = "landlock"
	FeatureLandlockScopes = "landlock-scopes"
)

// scopesGrade is the interface of Landlock from which on sockets and signals have scopes.
const scopesGrade = 6

// Probe asks this kernel which walls it can build. It changes nothing; for the question about user namespaces it starts a
// process that ends at once.
func Probe() []Feature {
	return []Feature{mounts(), users(), hiddenProc(), seccomp(), landlockAny(), landlockScopes()}
}

const tooOld = "Install a kernel of 5.19 or later by your distribution's way"

func have(name string) Feature { return Feature{Name: name, Have: true} }

func lack(name, why, mend string) Feature { return Feature{Name: name, Why: why, Mend: mend} }

// mounts asks for the youngest of the calls that package view stands on, with a descriptor that is none.
func mounts() Feature {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if errors.Is(err, unix.ENOSYS) {
		return lack(FeatureMounts, "The kernel is older than 5.12 and cannot make trees of mounts read-only.", tooOld)
	}
	return have(FeatureMounts)
}

// users tries to make a user namespace with one id, because the settings that forbid it differ between distributions.
func users() Feature {
	id := func(inside, outside int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: inside, HostID: outside, Size: 1}}
	}
	cmd := exec.Command("/nonexistent/forgeyard-probe")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: id(0, os.Geteuid()), GidMappings: id(0, os.Getegid()),
		Chroot: "/", // AppArmor's restriction gives the namespace, and no rights in it: this needs one
	}
	err := cmd.Run()
	if err == nil || errors.Is(err, unix.ENOENT) {
		return have(FeatureUsers)
	}
	return usersWhy(err, setting)
}

// usersWhy finds what forbids user namespaces. read returns the text of a setting below /proc/sys, "" where there is none.
func usersWhy(err error, read func(string) string) Feature {
	switch {
	case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return lack(FeatureUsers, "AppArmor forbids user namespaces to programs without a profile.", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
	case read("kernel/unprivileged_userns_clone") == "0":
		return lack(FeatureUsers, "The kernel forbids user namespaces to users other than root.", "sysctl -w kernel.unprivileged_userns_clone=1")
	case read("user/max_user_namespaces") == "0":
		return lack(FeatureUsers, "The number of user namespaces is limited to 0.", "sysctl -w user.max_user_namespaces=15000")
	}
	return lack(FeatureUsers, fmt.Sprintf("A user namespace cannot be made here: %v. Inside of a container its runtime may forbid it.", err), "")
}

func setting(name string) string {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func hiddenProc() Feature {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return lack(FeatureHiddenProc, fmt.Sprintf("The kernel does not say its version: %v.", err), "")
	}
	return hiddenProcIn(unix.ByteSliceToString(u.Release[:]))
}

// hiddenProcIn goes by the version: before 5.8 the option was one of the pid namespace's, and was ignored where it mattered.
func hiddenProcIn(release string) Feature {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 8 {
		return lack(FeatureHiddenProc, fmt.Sprintf("The kernel %s cannot hide processes in one /proc alone; that came with 5.8.", release), tooOld)
	}
	return have(FeatureHiddenProc)
}

// seccomp asks for an action that every kernel with filters knows.
func seccomp() Feature {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if err := actionAvailable(&action); err != nil {
		return lack(FeatureSeccomp, fmt.Sprintf("The kernel has no filter of system calls: %v.", err), "Use a kernel built with CONFIG_SECCOMP_FILTER")
	}
	return have(FeatureSeccomp)
}

func landlockAny() Feature { return landlockFor(landlockGrade()) }

func landlockFor(grade int) Feature {
	switch {
	case grade == 0:
		return lack(FeatureLandlock, "Landlock is not in the kernel, or was not switched on at its start.",
			"Add landlock to the list lsm= of the kernel's command line (after those of /sys/kernel/security/lsm), and restart")
	case grade < leastLandlock:
		return Feature{
			Name: FeatureLandlock, Grade: grade, Mend: tooOld,
			Why: "The kernel's Landlock is the first one, which cannot let files move between folders; that came with 5.19.",
		}
	}
	return Feature{Name: FeatureLandlock, Have: true, Grade: grade}
}

func landlockScopes() Feature { return landlockScopesFor(landlockGrade()) }

func landlockScopesFor(grade int) Feature {
	if grade < scopesGrade {
		return Feature{
			Name: FeatureLandlockScopes, Grade: grade,
			Why:  "The kernel's Landlock knows no scopes of sockets and signals; they came with 6.12.",
			Mend: "Install a kernel of 6.12 or later",
		}
	}
	return Feature{Name: FeatureLandlockScopes, Have: true, Grade: grade}
}
