package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// endpointsFile, in the state folder, has the daemons that enrolment was told, one host:port a line, in their order. An
// agent uses them where its settings name none.
const endpointsFile = "endpoints"

// maxEndpointsFile bounds what is read of it.
const maxEndpointsFile = 4 << 10

// noteEndpoints keeps the daemons of an enrolment.
func noteEndpoints(state string, endpoints []string) error {
	path := filepath.Join(state, endpointsFile)
	if err := disk.WriteFile(path, []byte(strings.Join(endpoints, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("note endpoints: %w", err)
	}
	return nil
}

// NotedEndpoints returns the daemons that enrolment has noted in a state folder, or none. A line that is no host:port is
// an error that names the file.
func NotedEndpoints(state string) ([]string, error) {
	path := filepath.Join(state, endpointsFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(content) > maxEndpointsFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxEndpointsFile)
	}
	endpoints := strings.Fields(string(content))
	for _, e := range endpoints {
		if host, port, err := net.SplitHostPort(e); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%s: %q is no host:port; name the daemons in the settings or mend the file", path, e)
		}
	}
	return endpoints, nil
}
