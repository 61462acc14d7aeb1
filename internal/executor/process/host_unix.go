//go:build unix

package process

import (
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// systemPath is what PATH ends with (D11).
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// tempVar names the folder for temporary files.
const tempVar = "TMPDIR"

// hostEnv is what every process of this system needs: nothing.
func hostEnv() []forge.EnvVar { return nil }

func hostPath() []string { return filepath.SplitList(systemPath) }
