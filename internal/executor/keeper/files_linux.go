package keeper

import "os"

// Files opens what the attempt has left.
func (w *workload) Files() (*os.Root, error) { return w.host.Files() }
