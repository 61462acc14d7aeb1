package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of what is free where jobs work.
const (
	leastDisk  = 1 * forge.GiB
	wantedDisk = 10 * forge.GiB
	leastFiles = 100_000
)

// disk looks at what is free in a folder.
func disk(folder string) []Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return []Finding{missing("disk space", folder+": "+err.Error(), "")}
	}
	free := forge.Bytes(st.Bavail) * forge.Bytes(st.Bsize)
	return []Finding{spaceOf(folder, free), filesOf(folder, st.Files, st.Ffree)}
}

// spaceOf judges how many bytes are free.
func spaceOf(folder string, free forge.Bytes) Finding {
	detail := fmt.Sprintf("%.1f GiB free in %s", float64(free)/float64(forge.GiB), folder)
	const mend = "make room, or name a folder on another disk: --data DIR"
	switch {
	case free < leastDisk:
		return missing("disk space", detail, mend)
	case free < wantedDisk:
		return weak("disk space", detail, mend)
	}
	return ok("disk space", detail)
}

// filesOf judges how many files can be made. A file system that makes room for them as they
// come says that it has none at all.
func filesOf(folder string, all, free uint64) Finding {
	switch {
	case all == 0:
		return ok("disk files", "")
	case free < leastFiles:
		return weak("disk files", fmt.Sprintf("%d more files in %s; a checkout has tens of thousands", free, folder), "remove files, or name a folder on another disk: --data DIR")
	}
	return ok("disk files", fmt.Sprintf("%d more", free))
}
