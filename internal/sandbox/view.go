package sandbox

// View is what a sandbox sees of the host's files besides the attempt's folder, all of it read-only.
type View struct {
	ReadOnly []Mount
	Path     []string // folders for PATH, in front of those of every system
	Hide     []string // paths of the host that no mount may show: the agent's state and keys
}

// Mount shows a file or folder of the host, with everything that is mounted below it.
type Mount struct {
	Source string // on the host, absolute
	Target string // inside, absolute; "" means the same
}
