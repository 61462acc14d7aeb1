package process

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
)

// secretsPrefix begins the names of the folders that hold secrets.
const secretsPrefix = "forgeyard-"

// secretsDir is the folder for an order's secrets that are files, or empty if none is. It is made when they come.
func (e *Executor) secretsDir(order *executor.Order) string {
	if !keeper.HasSecretFiles(order) {
		return ""
	}
	return filepath.Join(memoryDir, e.secretsName(order.Context.Attempt.String()))
}

// secretsName names the folder of an attempt's secrets. Every user of the machine can read names in memoryDir, so that the
// mark is not in it: whoever knows that can have processes taken for an attempt's.
func (e *Executor) secretsName(attempt string) string {
	sum := sha256.Sum256([]byte(e.mark))
	return secretsPrefix + hex.EncodeToString(sum[:8]) + "." + attempt
}
