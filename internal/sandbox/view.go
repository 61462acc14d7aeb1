package sandbox

// View is what a sandbox sees of the host's files besides the attempt's folder, all of it read-only.
type View struct {
	ReadOnly []Mount
	Path     []string // folders for PATH, in front of DefaultPath
}

// Mount shows a file or folder of the host, with everything that is mounted below it.
type Mount struct {
	Source string // on the host, absolute
	Target string // inside, absolute; "" means the same
}
