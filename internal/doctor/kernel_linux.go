package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
)

// fewNamespaces is the number of user namespaces below which a busy agent runs out: one for
// each sandbox that runs or waits, and as many again for whoever else has some.
const fewNamespaces = 256

// readSetting returns the text of a setting below /proc/sys, "" where there is none.
func readSetting(name string) string {
	text, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// settings says what the kernel's settings allow of user namespaces. Root needs none of the
// permissions that an unprivileged agent does, which the findings say.
func settings(read func(string) string, root bool) []Finding {
	return []Finding{
		namespaces(read("user/max_user_namespaces")),
		forbids(root, "unprivileged user namespaces", read("kernel/unprivileged_userns_clone") == "0",
			"kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1"),
		forbids(root, "AppArmor and user namespaces", read("kernel/apparmor_restrict_unprivileged_userns") == "1",
			"AppArmor forbids user namespaces to programs without a profile",
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or a profile with the line \"userns,\" for this program"),
	}
}

// namespaces judges how many user namespaces there may be.
func namespaces(limit string) Finding {
	const check, mend = "number of user namespaces", "sysctl -w user.max_user_namespaces=15000"
	n, err := strconv.ParseUint(limit, 10, 64)
	switch {
	case err != nil:
		return missing(check, "the kernel has no user namespaces", "use a kernel built with CONFIG_USER_NS")
	case n == 0:
		return missing(check, "user.max_user_namespaces is 0", mend)
	case n < fewNamespaces:
		return weak(check, fmt.Sprintf("user.max_user_namespaces is %d; each sandbox needs one", n), mend)
	}
	return ok(check, fmt.Sprintf("%d", n))
}

// forbids judges a setting that matters for agents that are not root.
func forbids(root bool, check string, forbidden bool, why, mend string) Finding {
	switch {
	case !forbidden:
		return ok(check, "")
	case root:
		return ok(check, why+", which does not matter to root")
	}
	return missing(check, why, mend)
}

// kernel says what this kernel knows of what walls are made of.
func kernel() []Finding {
	var all []Finding
	for _, f := range confine.Probe() {
		all = append(all, feature(f))
	}
	return all
}

// feature turns a feature of the kernel into a finding.
func feature(f confine.Feature) Finding {
	check := "kernel " + f.Name
	if !f.Have {
		return missing(check, f.Why, f.Mend)
	}
	if f.Grade > 0 {
		return ok(check, fmt.Sprintf("ABI %d", f.Grade))
	}
	return ok(check, "")
}

// groups says which control groups this program may make, and makes none that stay.
func groups(state string) []Finding {
	tree, report := cgroup.Open(cgroup.Config{State: state})
	all := groupsOf(report)
	if err := tree.Close(); err != nil {
		all = append(all, weak("control groups", err.Error(), ""))
	}
	return all
}

// groupsOf turns what control groups give into findings.
func groupsOf(r cgroup.Report) []Finding {
	version := fmt.Sprintf("version %d, below %s", r.Version, r.Parent)
	return []Finding{
		grant("control groups memory", r.Memory, version, "jobs are not bound in memory"),
		grant("control groups swap", r.Swap, "", "jobs can swap beyond their bound"),
		grant("control groups cpu", r.CPU, version, "jobs are not bound in processor time"),
		grant("control groups pids", r.Pids, version, "jobs are bound in processes by user id only"),
		grant("control groups freeze", r.Freeze, "", "jobs are killed process by process"),
	}
}

// grant turns one grant into a finding. Without it jobs are confined, and less well.
func grant(check string, g cgroup.Grant, detail, effect string) Finding {
	if g.Given {
		return ok(check, detail)
	}
	return weak(check, effect+": "+g.Why, g.Mend)
}
