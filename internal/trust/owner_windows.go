package trust

import "os"

// ours is always true: access lists say here who may do what.
func ours(os.FileInfo) bool { return true }
