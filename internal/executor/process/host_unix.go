//go:build unix

package process

import "path/filepath"

// systemPath is what PATH ends with (D11).
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func hostPath() []string { return filepath.SplitList(systemPath) }
