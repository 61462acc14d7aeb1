package launch

import (
	"os"
	"os/signal"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ignoreSignals keeps signals from ending the launcher, and gives them their usual meaning again in its children.
func ignoreSignals() { signal.Notify(make(chan os.Signal, 1)) }

// faults are the signals that the runtime makes panics of. It must go on to handle them, and would die of one that somebody
// sends unless they are asked for.
var faults = []os.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE}

// runtimeSignals are those that a Go process uses itself: to wait for children, to interrupt its threads, and to have each
// of them make a system call.
var runtimeSignals = []unix.Signal{unix.SIGCHLD, unix.SIGURG, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, 32, 33, 34}

// lastSignal is the highest number of a signal.
const lastSignal = 64

// defaultSignals keeps signals from ending pid 1, whose id steps may share: the kernel drops what is sent to the first process
// of a namespace from inside, as long as that has not asked for it. The runtime has asked for everything. To take them one by
// one from package signal instead costs two changes of threads for each.
func defaultSignals() {
	signal.Notify(make(chan os.Signal, 1), faults...)
	var byDefault [4]uint64 // the kernel's struct sigaction, all of it zero
	for s := unix.Signal(1); s <= lastSignal; s++ {
		if slices.Contains(runtimeSignals, s) {
			continue
		}
		// It cannot fail but for the two signals that are nobody's to ask for.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	}
}
