package protocoltest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Table is a table of a document: rows of cells by the name of their column.
type Table []map[string]string

// ReadTable returns the table of a document below protocols/internal whose columns begin with those given.
func ReadTable(document string, columns ...string) (Table, error) {
	data, err := os.ReadFile(filepath.Join(Root, "protocols", "internal", document))
	if err != nil {
		return nil, err
	}
	var table Table
	var names []string
	for line := range strings.Lines(string(data)) {
		cells, ok := cellsOf(line)
		switch {
		case !ok:
			names = nil
		case names == nil && begins(cells, columns):
			names = cells
		case names != nil && !strings.HasPrefix(cells[0], "---"):
			if len(cells) != len(names) {
				return nil, fmt.Errorf("%s: %d cells under %d columns: %s", document, len(cells), len(names), line)
			}
			row := map[string]string{}
			for i, name := range names {
				row[name] = cells[i]
			}
			table = append(table, row)
		}
	}
	if table == nil {
		return nil, fmt.Errorf("%s has no table of %v", document, columns)
	}
	return table, nil
}

func cellsOf(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil, false
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

func begins(cells, columns []string) bool {
	if len(cells) < len(columns) {
		return false
	}
	for i, name := range columns {
		if cells[i] != name {
			return false
		}
	}
	return true
}

// RegistryRow is how a type stands in the document.
func RegistryRow(info protocol.Info) map[string]string {
	var kinds []string
	for _, kind := range protocol.StreamKinds() {
		if info.Streams.Has(kind.Kind) {
			kinds = append(kinds, kind.Name)
		}
	}
	feature := "—"
	if info.Feature != protocol.FeatureNone {
		feature = info.Feature.String()
	}
	return map[string]string{
		"id": fmt.Sprintf("%04x", uint16(info.ID)), "message": info.Name, "schema": fmt.Sprint(info.Schema),
		"family": info.Family.String(), "to": info.To.String(), "streams": strings.Join(kinds, ", "),
		"max": size(info.Max), "feature": feature,
	}
}

func size(n uint32) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d Ki", n/1024)
	}
	return fmt.Sprint(n)
}

// States lists a stage as the document does.
func States(s protocol.Stage) string {
	var names []string
	for state := forge.ConnConnecting; state <= forge.ConnClosed; state++ {
		if s.Has(state) {
			names = append(names, state.String())
		}
	}
	return strings.Join(names, ", ")
}

// Classes are the letters of retry classes.
var Classes = map[forge.RetryClass]string{
	forge.RetryStop: "N", forge.RetryOperator: "O", forge.RetryBackoff: "B", forge.RetryElsewhere: "E",
	forge.RetryDelayed: "D", forge.RetryRecover: "R", forge.RetryConnection: "C",
}

var declaration = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// Functions returns the names of the tests and fuzz targets of the packages of the protocol.
func Functions() (map[string]bool, error) {
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(Root, "internal", "protocol", "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	own, err := filepath.Glob(filepath.Join(Root, "internal", "protocol", "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, own...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range declaration.FindAllStringSubmatch(string(data), -1) {
			names[match[1]] = true
		}
	}
	return names, nil
}
