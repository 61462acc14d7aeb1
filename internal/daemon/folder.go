package daemon

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Names in the daemon's folder (D16).
const (
	logsDir    = "logs"
	objectsDir = "cas"
	trustDir   = "trust"
	tokenFile  = "admin.token"
	keyFile    = "secret.key"
)

const (
	// adminPrefix begins every bearer token, so that scanners for leaked secrets find it.
	adminPrefix = "fy_admin_"
	adminBytes  = 32
	// maxSocketPath is the longest path that every system takes for a socket.
	maxSocketPath = 103
)

// adminToken reads the bearer token of a folder, or makes it. A token that others can read is refused: whoever has it may
// run anything on every runner. The caller has the folder's lock.
func adminToken(dir string) (forge.Secret, error) {
	path := filepath.Join(dir, tokenFile)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeToken(path); err != nil {
			return forge.Secret{}, fmt.Errorf("make the admin token: %w", err)
		}
	case err != nil:
		return forge.Secret{}, fmt.Errorf("read the admin token: %w", err)
	case othersCanRead(info):
		return forge.Secret{}, fmt.Errorf("read the admin token: others can read %s, or it is theirs: run chmod 600 on it, or remove it to get a new one", path)
	}
	token, err := api.ReadToken(path)
	if err != nil {
		return forge.Secret{}, fmt.Errorf("%w: remove the file to get a new one", err)
	}
	return token, nil
}

// makeToken writes a new token whole or not at all.
func makeToken(path string) error {
	var secret [adminBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	text := adminPrefix + base64.RawURLEncoding.EncodeToString(secret[:]) + "\n"
	return disk.WriteFile(path, []byte(text), 0o600)
}

// listenSocket listens on the socket of a folder, in place of one that a dead process left. The folder is its owner's
// alone, so nobody else can connect before the permissions are set. It returns nil where the path is too long for a socket.
func listenSocket(dir, name string) (net.Listener, error) {
	path := filepath.Join(dir, name)
	if len(path) > maxSocketPath {
		return nil, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
