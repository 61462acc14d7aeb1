//go:build unix

package keeper

import "github.com/forgeyard/forgeyard/internal/forge"

// tempVar names the folder for temporary files.
const tempVar = "TMPDIR"

// hostEnv is what every process of this system needs: nothing.
func hostEnv() []forge.EnvVar { return nil }
