package keeper

import "os"

// Files implements executor.Workload: the attempt's folder is where the workload was at work.
func (w *workload) Files() (*os.Root, error) { return os.OpenRoot(w.job.Order.Folder) }
