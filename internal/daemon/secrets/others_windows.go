package secrets

import "io/fs"

// Windows keeps others out by the folder's access list, which has no place in the mode.
func othersCanRead(info fs.FileInfo) bool { return !info.Mode().IsRegular() }
