package process

import (
	"os"
	"path/filepath"
)

func hostPath() []string {
	root := os.Getenv("SystemRoot")
	return []string{filepath.Join(root, "system32"), root, filepath.Join(root, "System32", "WindowsPowerShell", "v1.0")}
}
