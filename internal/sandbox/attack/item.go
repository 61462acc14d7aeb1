package attack

// Item is something of which hostile work must have no use. Each has an attack at least.
type Item string

// The items, as they were required.
const (
	ItemAgentKey        Item = "agent key"
	ItemAgentState      Item = "agent state folder"
	ItemLauncherSocket  Item = "launcher socket"
	ItemWorkspace       Item = "another workspace"
	ItemHostFiles       Item = "host files outside the view"
	ItemProcOfOthers    Item = "/proc of others"
	ItemInit            Item = "init's memory and environment"
	ItemDescriptors     Item = "inherited fds"
	ItemExe             Item = "/proc/self/exe and fd tricks"
	ItemLinks           Item = "symlink races at set-up"
	ItemMount           Item = "mount"
	ItemRemount         Item = "remount"
	ItemPivot           Item = "pivot"
	ItemPtrace          Item = "ptrace"
	ItemProcessVM       Item = "process_vm"
	ItemFileRights      Item = "setuid and file capabilities"
	ItemDevices         Item = "device nodes"
	ItemRawSockets      Item = "raw sockets"
	ItemAbstractSockets Item = "abstract sockets"
	ItemNetlink         Item = "netlink"
	ItemKeyring         Item = "keyring"
	ItemUserNamespaces  Item = "user namespace nesting"
	ItemCgroup          Item = "cgroup escape and release agent"
	ItemCorePattern     Item = "core pattern"
	ItemSettings        Item = "sysctl and sysfs writes"
	ItemKernelLog       Item = "dmesg"
	ItemModules         Item = "kernel modules"
	ItemBPF             Item = "bpf"
	ItemRing            Item = "io_uring"
	ItemTime            Item = "time setting"
	ItemHostName        Item = "host name"
	ItemOutliving       Item = "outliving the attempt"
	ItemForkBomb        Item = "fork bomb"
	ItemMemoryBomb      Item = "memory bomb"
	ItemTmpfsBomb       Item = "tmpfs bomb"
	ItemExhaustion      Item = "fd and inode exhaustion"
	ItemLogFlood        Item = "log flood"
	ItemInputs          Item = "shared inputs"
	ItemLayers          Item = "layers over inputs"
	ItemStore           Item = "store of objects"
	ItemMore            Item = "besides" // what nobody asked for
)

// Items lists those that were required.
func Items() []Item {
	return []Item{
		ItemAgentKey, ItemAgentState, ItemLauncherSocket, ItemWorkspace, ItemHostFiles, ItemProcOfOthers, ItemInit,
		ItemDescriptors, ItemExe, ItemLinks, ItemMount, ItemRemount, ItemPivot, ItemPtrace, ItemProcessVM, ItemFileRights,
		ItemDevices, ItemRawSockets, ItemAbstractSockets, ItemNetlink, ItemKeyring, ItemUserNamespaces, ItemCgroup,
		ItemCorePattern, ItemSettings, ItemKernelLog, ItemModules, ItemBPF, ItemRing, ItemTime, ItemHostName, ItemOutliving,
		ItemForkBomb, ItemMemoryBomb, ItemTmpfsBomb, ItemExhaustion, ItemLogFlood,
		ItemInputs, ItemLayers, ItemStore,
	}
}

// Defence is something that stops attacks. Those of packages view, confine and launch have the names by which a build with
// the tag forgeyard_unsafe switches them off; the others are in how a sandbox is ordered.
type Defence string

// Defences that need no switch: what they keep away is given on purpose instead.
const (
	NotShown         Defence = "not-shown"         // decoys are outside of the view
	ThreeDescriptors Defence = "three-descriptors" // a step has no more
	EmptyEnvironment Defence = "empty-environment" // a step has what it was given
	NetworkNone      Defence = "network-none"      // a network of its own
	PidsLimit        Defence = "pids-limit"
	MemoryLimit      Defence = "memory-limit"
	ShmLimit         Defence = "shm-limit"
	BackPressure     Defence = "back-pressure" // nobody takes more output than it wants
	OwnSandbox       Defence = "own-sandbox"   // attempts are in no sandbox together
	AllDie           Defence = "all-die"       // what is left dies with pid 1, not only the step's group
)
