package capability

import (
	"fmt"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Where a disk is short, in bytes: below the first a runner takes jobs that another one should rather have, below the
// second none.
const (
	lowDisk  = 2 * forge.GiB
	fullDisk = 512 * forge.MiB
)

// maxSkew is how far a wall clock may be off. It decides nothing, but makes logs and certificates hard to understand.
const maxSkew = 30 * time.Second

// Facts are what health is told from.
type Facts struct {
	Reading   Reading
	Sandboxes []forge.Sandbox
	Executor  error // of the last attempt that could not be set up for a reason of this machine; nil after one that could
	CleanUp   error // of the last workspace that could not be removed; nil once none is left (07§96)

	Now       time.Time
	Skew      time.Duration // of our wall clock ahead of the daemon's
	SkewKnown bool
	NotBefore time.Time // of the certificate
	NotAfter  time.Time
}

// Check runs the checks that are asked for, or all, and sums them up.
func Check(f Facts, kinds []forge.HealthCheckKind) forge.Health {
	all := []struct {
		kind  forge.HealthCheckKind
		check func(Facts) (forge.HealthStatus, string)
	}{
		{forge.CheckDiskSpace, checkDisk},
		{forge.CheckSandbox, checkSandbox},
		{forge.CheckExecutor, checkExecutor},
		{forge.CheckClock, checkClock},
		{forge.CheckCredential, checkCredential},
	}
	var checks []forge.HealthCheck
	for _, c := range all {
		if len(kinds) > 0 && !slices.Contains(kinds, c.kind) {
			continue
		}
		status, detail := c.check(f)
		checks = append(checks, forge.HealthCheck{Kind: c.kind, Status: status, Detail: clip(line(detail))})
	}
	return forge.HealthOf(checks)
}

func clip(s string) string { return s[:min(len(s), forge.MaxTitle)] }

func checkDisk(f Facts) (forge.HealthStatus, string) {
	r := f.Reading
	switch {
	case r.DiskErr != nil:
		return forge.Unhealthy, r.DiskErr.Error()
	case r.Disk < fullDisk:
		return forge.Unhealthy, fmt.Sprintf("%d MiB free, no job is taken below %v", r.Disk/forge.MiB, fullDisk)
	case f.CleanUp != nil:
		return forge.Degraded, f.CleanUp.Error()
	case r.Disk < lowDisk:
		return forge.Degraded, fmt.Sprintf("%d MiB free, less than %v", r.Disk/forge.MiB, lowDisk)
	default:
		return forge.Healthy, fmt.Sprintf("%d GiB free", r.Disk/forge.GiB)
	}
}

func checkSandbox(f Facts) (forge.HealthStatus, string) {
	if len(f.Sandboxes) == 0 {
		return forge.Unhealthy, "there is nothing here that could run a job"
	}
	kinds := make([]string, len(f.Sandboxes))
	for i, s := range f.Sandboxes {
		kinds[i] = s.Kind.String()
	}
	return forge.Healthy, fmt.Sprint("kinds: ", kinds)
}

func checkExecutor(f Facts) (forge.HealthStatus, string) {
	if f.Executor != nil {
		return forge.Degraded, f.Executor.Error()
	}
	return forge.Healthy, ""
}

func checkClock(f Facts) (forge.HealthStatus, string) {
	skew := f.Skew.Abs()
	side := "ahead of"
	if f.Skew < 0 {
		side = "behind"
	}
	text := fmt.Sprintf("this clock is %v %s the daemon's", skew.Round(time.Second), side)
	switch {
	case !f.NotBefore.IsZero() && f.Now.Before(f.NotBefore):
		return forge.Degraded, fmt.Sprintf("this clock is at least %v behind: the certificate is of the future", f.NotBefore.Sub(f.Now).Round(time.Second))
	case !f.SkewKnown:
		return forge.Healthy, "not compared with the daemon's yet"
	case skew > maxSkew:
		return forge.Degraded, text + "; set it, or turn on its synchronization"
	default:
		return forge.Healthy, text
	}
}

func checkCredential(f Facts) (forge.HealthStatus, string) {
	left := f.NotAfter.Sub(f.Now)
	switch {
	case f.NotAfter.IsZero():
		return forge.Unhealthy, "there is no certificate: enrol this runner"
	case left <= 0:
		return forge.Unhealthy, fmt.Sprintf("the certificate expired %v ago", -left.Round(time.Minute))
	case left < f.NotAfter.Sub(f.NotBefore)/6:
		return forge.Degraded, fmt.Sprintf("the certificate expires in %v and was not renewed", left.Round(time.Minute))
	default:
		return forge.Healthy, fmt.Sprintf("the certificate is good for %v", left.Round(time.Hour))
	}
}
