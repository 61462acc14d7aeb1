//go:build linux

package attack

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// Defences that have switches.
const (
	Seccomp       Defence = confine.DefenceSeccomp
	Landlock      Defence = confine.DefenceLandlock
	Scopes        Defence = confine.DefenceLandlockScopes
	NoRights      Defence = confine.DefenceCapabilities
	NoNewRights   Defence = confine.DefenceNoNewPrivs
	Undumpable    Defence = confine.DefenceUndumpable
	Limits        Defence = confine.DefenceLimits
	ReadOnlyBinds Defence = view.DefenceReadOnlyBinds
	ReadOnlyRoot  Defence = view.DefenceReadOnlyRoot
	ReadOnlyProc  Defence = view.DefenceReadOnlyProc
	MaskedProc    Defence = view.DefenceMaskedProc
	HiddenProc    Defence = view.DefenceHiddenProc
	OwnProc       Defence = view.DefenceOwnProc
	MinimalRoot   Defence = view.DefenceMinimalRoot
	NoSetUID      Defence = view.DefenceNoSetUID
	NoDevices     Defence = view.DefenceNoDevices
	ReadOnlyTrees Defence = view.DefenceReadOnlyTrees
	OwnLayers     Defence = view.DefenceOwnLayers
	CoveredLayers Defence = view.DefenceCoveredLayers
)

// Why some attacks have no control.
const (
	hostRootOnly = "the kernel grants it to the host's root alone, which nothing in a sandbox is, whatever is switched off"
	noSwitch     = "there is no switch: folders are reached by descriptors, never by a path that could have a link in it"
)

// All is every attack.
func All() []Attack {
	return slices.Concat(fileAttacks(), processAttacks(), mountAttacks(), rightsAttacks(), networkAttacks(), kernelAttacks(), lifeAttacks(), treeAttacks(), bombs())
}

func on(d ...Defence) []Defence { return d }

func fileAttacks() []Attack {
	return []Attack{
		{Name: "read-key", Item: ItemAgentKey, Threat: "S11", Defences: on(NotShown), run: readKey},
		{Name: "list-state", Item: ItemAgentState, Threat: "S11", Defences: on(NotShown), run: listState},
		{Name: "sweep", Item: ItemAgentState, Threat: "S11", Defences: on(NotShown), run: sweep},
		{Name: "connect-socket", Item: ItemLauncherSocket, Threat: "S11", Defences: on(NotShown), Also: on(Landlock), run: connectSocket},
		{Name: "read-sibling", Item: ItemWorkspace, Threat: "S14", Defences: on(NotShown), run: readSibling},
		{Name: "find-left", Item: ItemWorkspace, Threat: "S14", Defences: on(OwnSandbox), run: findLeft},
		{Name: "open-by-handle", Item: ItemWorkspace, Threat: "S12", NoControl: hostRootOnly, run: openByHandle},
		{Name: "read-outside", Item: ItemHostFiles, Threat: "S12", Defences: on(NotShown), run: readOutside},
		{Name: "write-root", Item: ItemHostFiles, Threat: "S12", Defences: on(ReadOnlyRoot, Landlock, NoRights), Root: true, run: writeRoot},
		{Name: "write-read-only", Item: ItemHostFiles, Threat: "S15", Defences: on(ReadOnlyBinds, Landlock), run: writeReadOnly},
		{Name: "overwrite-program", Item: ItemExe, Threat: "S12", Defences: on(ReadOnlyBinds, Landlock), run: overwriteProgram},
		{Name: "climb", Item: ItemExe, Threat: "S12", Defences: on(ThreeDescriptors, Landlock), run: climbFromDescriptors},
		{Name: "use-descriptors", Item: ItemDescriptors, Threat: "S12", Defences: on(ThreeDescriptors), run: useDescriptors},
		{Name: "read-environment", Item: ItemMore, Threat: "S11", Defences: on(EmptyEnvironment), run: readEnvironment},
		{Name: "follow-link", Item: ItemLinks, Threat: "S18", Defences: on(NotShown), run: readLinkedTmp},
		{Name: "link-for-tmp", Item: ItemLinks, Threat: "S18", NoControl: noSwitch, Setup: LinkForTmp, run: readLinkedTmp},
		{Name: "link-for-home", Item: ItemLinks, Threat: "S18", NoControl: noSwitch, Setup: LinkForHome, run: readLinkedTmp},
		{Name: "link-race", Item: ItemLinks, Threat: "S18", NoControl: noSwitch, Setup: LinkRace, run: readLinkedTmp},
	}
}

func processAttacks() []Attack {
	return []Attack{
		{Name: "find-process", Item: ItemProcOfOthers, Threat: "S11", Defences: on(OwnProc), run: findProcess},
		{Name: "see-init", Item: ItemProcOfOthers, Threat: "S11", Defences: on(HiddenProc), run: seeInit},
		{Name: "read-masked", Item: ItemProcOfOthers, Threat: "S12", Defences: on(MaskedProc), run: readMaskedProc},
		{Name: "read-init-memory", Item: ItemInit, Threat: "S11", Defences: on(Undumpable), Also: on(Landlock), Single: true, run: readInitMemory},
		{Name: "read-init-environment", Item: ItemInit, Threat: "S11", Defences: on(Undumpable), Also: on(Landlock), Single: true, run: readInitEnvironment},
		{Name: "open-init-descriptors", Item: ItemLauncherSocket, Threat: "S11", Defences: on(Undumpable), Also: on(Landlock), Single: true, run: openInitDescriptors},
		{Name: "take-init-descriptor", Item: ItemLauncherSocket, Threat: "S11", Defences: on(Undumpable, Seccomp), Also: on(Landlock), Single: true, run: takeInitDescriptor},
		{Name: "trace-init", Item: ItemPtrace, Threat: "S12", Defences: on(Undumpable), Also: on(Landlock), Single: true, run: traceInit},
		{Name: "read-init-directly", Item: ItemProcessVM, Threat: "S11", Defences: on(Undumpable), Also: on(Landlock), Single: true, run: readInitDirectly},
		{Name: "dump-core", Item: ItemCorePattern, Threat: "S30", Defences: on(Limits), run: dumpCore},
	}
}

func mountAttacks() []Attack {
	walls := on(Seccomp, Landlock, NoRights)
	return []Attack{
		{Name: "mount-memory", Item: ItemMount, Threat: "S12", Defences: walls, Root: true, run: mountMemory},
		{Name: "mount-proc", Item: ItemMount, Threat: "S12", Defences: walls, Root: true, run: mountProc},
		{Name: "mount-new", Item: ItemMount, Threat: "S12", Defences: walls, Root: true, run: mountNew},
		{Name: "clone-tree", Item: ItemMount, Threat: "S12", Defences: on(Seccomp, NoRights), Root: true, run: cloneTree},
		{Name: "uncover", Item: ItemMount, Threat: "S12", Defences: walls, Root: true, run: uncover},
		{Name: "remount", Item: ItemRemount, Threat: "S12", Defences: walls, Root: true, run: remount},
		{Name: "set-mount-attributes", Item: ItemRemount, Threat: "S12", Defences: walls, Root: true, run: setMountAttributes},
		{Name: "pivot", Item: ItemPivot, Threat: "S12", Defences: walls, Root: true, run: pivot},
		{Name: "change-root", Item: ItemPivot, Threat: "S12", Defences: on(Seccomp, NoRights), Root: true, run: changeRoot},
	}
}

func rightsAttacks() []Attack {
	return []Attack{
		{Name: "run-setuid", Item: ItemFileRights, Threat: "S12", Defences: on(NoNewRights, NoSetUID), Also: on(Seccomp, Landlock), run: runSetuid},
		{Name: "run-capable", Item: ItemFileRights, Threat: "S12", Defences: on(NoNewRights, NoSetUID, NoRights), Also: on(Seccomp, Landlock), run: runCapable},
		{Name: "become-root", Item: ItemFileRights, Threat: "S12", Defences: on(NoRights), Root: true, run: becomeRoot},
		{Name: "change-owner", Item: ItemFileRights, Threat: "S12", Defences: on(NoRights), Root: true, run: changeOwner},
		{Name: "make-node", Item: ItemDevices, Threat: "S12", NoControl: hostRootOnly, run: makeNode},
		{Name: "open-node", Item: ItemDevices, Threat: "S12", Defences: on(NoDevices), run: openNode},
		{Name: "list-devices", Item: ItemDevices, Threat: "S12", Defences: on(MinimalRoot), run: listDevices},
		{Name: "nest-users", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp), run: nestUsers},
		{Name: "unshare-users", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp), run: unshareUsers},
		{Name: "clone3-users", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp), run: clone3Users},
		{Name: "unshare-mounts", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp, NoRights), Root: true, run: unshareMounts},
		{Name: "enter-namespaces", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp, NoRights), Root: true, run: enterNamespaces},
		{Name: "other-calls", Item: ItemUserNamespaces, Threat: "S12", Defences: on(Seccomp), run: otherCalls},
	}
}

func networkAttacks() []Attack {
	return []Attack{
		{Name: "raw-socket", Item: ItemRawSockets, Threat: "S25", Defences: on(Seccomp, NoRights), Root: true, run: rawSocket},
		{Name: "packet-socket", Item: ItemRawSockets, Threat: "S25", Defences: on(Seccomp, NoRights), Root: true, run: packetSocket},
		{Name: "machine-socket", Item: ItemRawSockets, Threat: "S12", Defences: on(Seccomp), run: machineSocket},
		{Name: "cipher-socket", Item: ItemRawSockets, Threat: "S12", Defences: on(Seccomp), run: cipherSocket},
		{Name: "connect-abstract", Item: ItemAbstractSockets, Threat: "S14", Defences: on(NetworkNone, Scopes), run: connectAbstract},
		{Name: "connect-abstract-with-network", Item: ItemAbstractSockets, Threat: "S14", Defences: on(Scopes), Networked: true, run: connectAbstract},
		{Name: "connect-loopback", Item: ItemMore, Threat: "S25", Defences: on(NetworkNone), run: connectLoopback},
		{Name: "event-socket", Item: ItemNetlink, Threat: "S12", Defences: on(Seccomp), run: eventSocket},
		{Name: "firewall-socket", Item: ItemNetlink, Threat: "S12", Defences: on(Seccomp), run: firewallSocket},
		{Name: "add-address", Item: ItemNetlink, Threat: "S25", Defences: on(NoRights), Root: true, run: addAddress},
	}
}

func kernelAttacks() []Attack {
	return []Attack{
		{Name: "add-key", Item: ItemKeyring, Threat: "S11", Defences: on(Seccomp), run: addKey},
		{Name: "search-keys", Item: ItemKeyring, Threat: "S11", Defences: on(Seccomp), run: searchKeys},
		{Name: "request-key", Item: ItemKeyring, Threat: "S11", Defences: on(Seccomp), run: requestKey},
		{Name: "leave-cgroup", Item: ItemCgroup, Threat: "S12", Defences: on(NotShown, ReadOnlyBinds, Landlock), run: leaveCgroup},
		{Name: "write-release", Item: ItemCgroup, Threat: "S12", Defences: on(NotShown, ReadOnlyBinds, Landlock), run: writeRelease},
		{Name: "mount-cgroup", Item: ItemCgroup, Threat: "S12", Defences: on(Seccomp, Landlock, NoRights), Root: true, run: mountCgroup},
		{Name: "write-core-pattern", Item: ItemCorePattern, Threat: "S12", Defences: on(NotShown, ReadOnlyBinds, Landlock), run: writeCorePattern},
		{Name: "set-sysctl", Item: ItemSettings, Threat: "S12", Defences: on(ReadOnlyProc, Landlock, NoRights), Root: true, run: setSysctl},
		{Name: "write-sysfs", Item: ItemSettings, Threat: "S12", Defences: on(NotShown, ReadOnlyBinds, Landlock), run: writeSysfs},
		{Name: "read-kernel-log", Item: ItemKernelLog, Threat: "S11", Defences: on(NotShown), run: readKernelLog},
		{Name: "load-module", Item: ItemModules, Threat: "S12", NoControl: hostRootOnly, run: loadModule},
		{Name: "use-bpf", Item: ItemBPF, Threat: "S12", Defences: on(Seccomp), run: useBPF},
		{Name: "use-ring", Item: ItemRing, Threat: "S12", Defences: on(Seccomp), run: useRing},
		{Name: "use-faults", Item: ItemMore, Threat: "S12", Defences: on(Seccomp), run: useFaults},
		{Name: "use-perf", Item: ItemMore, Threat: "S12", Defences: on(Seccomp), run: usePerf},
		{Name: "set-time", Item: ItemTime, Threat: "S29", NoControl: hostRootOnly, run: setTime},
		{Name: "set-host-name", Item: ItemHostName, Threat: "S12", Defences: on(Seccomp, NoRights), Root: true, run: setHostName},
		{Name: "use-shared-memory", Item: ItemMore, Threat: "S14", NoControl: "no sandbox can be made without a namespace for it; find-left, in one sandbox with its neighbour, finds a segment by the same calls", run: useSharedMemory},
	}
}

func lifeAttacks() []Attack {
	return []Attack{
		{Name: "fork-twice", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: forkTwice},
		{Name: "leave-session", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: leaveSession},
		{Name: "leave-group", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: leaveGroup},
		{Name: "leave-stopped", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: leaveStopped},
		{Name: "ignore-signals", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: ignoreSignals},
		{Name: "adopt-orphans", Item: ItemOutliving, Threat: "S13", Defences: on(AllDie), Judge: ByLife, run: adoptOrphans},
	}
}

// Bounds of bombs. What a sandbox is limited to in tests is well below.
const (
	mostProcesses   = 160
	mostMemory      = 160 << 20
	mostInodes      = 120_000
	mostDescriptors = 540_000
	mostOutput      = 48 << 20
)

func bombs() []Attack {
	return []Attack{
		{Name: "fork-bomb", Item: ItemForkBomb, Threat: "S13", Defences: on(PidsLimit), Most: mostProcesses, run: forkBomb},
		{Name: "memory-bomb", Item: ItemMemoryBomb, Threat: "S22", Defences: on(MemoryLimit), Most: mostMemory, Judge: ByDeath, run: memoryBomb},
		{Name: "file-bomb", Item: ItemTmpfsBomb, Threat: "S22", Defences: on(ShmLimit), Most: mostMemory, run: fileBomb},
		{Name: "inode-bomb", Item: ItemExhaustion, Threat: "S22", Defences: on(ShmLimit), Most: mostInodes, run: inodeBomb},
		{Name: "descriptor-bomb", Item: ItemExhaustion, Threat: "S22", Defences: on(Limits), Most: mostDescriptors, run: descriptorBomb},
		{Name: "log-flood", Item: ItemLogFlood, Threat: "S22", Defences: on(BackPressure), Most: mostOutput, Judge: ByOutput, run: logFlood},
	}
}
