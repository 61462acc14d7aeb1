package archtest

import (
	"slices"
	"strings"
	"testing"
)

// The table may change with any commit. These tests hold what it may never
// come to say.

// reach lists the packages that a row's code may import, for the packages of
// this tree and the rows that are only planned.
func reach(t *table, r row) []string {
	var reached []string
	for _, to := range t.rows {
		if to.pattern != r.pattern && t.allowed(&r, &to, to.pattern, false) {
			reached = append(reached, to.pattern)
		}
	}
	return reached
}

func readTestTable(t *testing.T, dir string) *table {
	t.Helper()
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, violations := readTable(m)
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	return table
}

// apart says which rows may import which against the wall between two sides.
func apart(t *table, from, to func(string) bool) []string {
	var broken []string
	for _, r := range t.rows {
		if !from(r.pattern) {
			continue
		}
		for _, target := range reach(t, r) {
			if to(target) {
				broken = append(broken, r.pattern+" may import "+target)
			}
		}
	}
	return broken
}

func under(prefixes ...string) func(string) bool {
	return func(pkg string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
	}
}

// walls are the separations that the product promises.
var walls = map[string]struct{ from, to func(string) bool }{
	"the agent knows no daemon code": {
		under("internal/runner"), under("internal/daemon"),
	},
	"the daemon knows no agent code": {
		under("internal/daemon"), under("internal/runner"),
	},
	"the domain does not know the wire": {
		under("internal/forge", "internal/lifecycle", "internal/authority", "internal/watchdog", "internal/daemon/scheduler", "internal/daemon/control", "internal/daemon/store"),
		under("internal/protocol", "postcard"),
	},
	"the wire does not know the public interface": {
		under("internal/protocol"), under("internal/api", "internal/daemon/httpapi", "internal/daemon/web"),
	},
	"a signing worker holds no executor": {
		under("internal/signer"), under("internal/executor", "internal/sandbox", "internal/runner"),
	},
}

func TestTheTableKeepsItsWalls(t *testing.T) {
	table := readTestTable(t, "../..")
	for name, wall := range walls {
		t.Run(name, func(t *testing.T) {
			for _, broken := range apart(table, wall.from, wall.to) {
				t.Error(broken)
			}
		})
	}
}

// TestEveryWallCanBeBroken gives each wall a table that breaks it.
func TestEveryWallCanBeBroken(t *testing.T) {
	breaks := map[string][2]string{
		"the agent knows no daemon code":              {"internal/runner/core", "internal/daemon/scheduler"},
		"the daemon knows no agent code":              {"internal/daemon/control", "internal/runner/core"},
		"the domain does not know the wire":           {"internal/forge", "internal/protocol/agentv1"},
		"the wire does not know the public interface": {"internal/protocol/agentv1", "internal/api"},
		"a signing worker holds no executor":          {"internal/signer", "internal/executor"},
	}
	for name, wall := range walls {
		t.Run(name, func(t *testing.T) {
			edge, ok := breaks[name]
			if !ok {
				t.Fatal("the wall has no example that breaks it")
			}
			table := &table{rows: []row{
				{pattern: edge[0], imports: []string{edge[1]}},
				{pattern: edge[1]},
			}}
			if len(apart(table, wall.from, wall.to)) != 1 {
				t.Errorf("%s imports %s and nothing was found", edge[0], edge[1])
			}
		})
	}
}

func TestPatternsCoverWhatTheySay(t *testing.T) {
	for _, test := range []struct {
		pattern, pkg string
		want         bool
	}{
		{"internal/forge", "internal/forge", true},
		{"internal/forge", "internal/forge/x", false},
		{"cmd/*", "cmd/forgeyard", true},
		{"cmd/*", "cmd", false},
		{"cmd/*", "cmd/forgeyard/x", false},
		{"internal/protocol/**", "internal/protocol", true},
		{"internal/protocol/**", "internal/protocol/agentv1/x", true},
		{"internal/protocol/**", "internal/protocoltest", false},
	} {
		if got := match(test.pattern, test.pkg); got != test.want {
			t.Errorf("match(%q, %q) = %v", test.pattern, test.pkg, got)
		}
	}
}
