package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Agent is the settings of forgeyard-agent. What each means stands in default/agent.yaml, for operators, and in
// docs/configuration.md, which is made from that.
type Agent struct {
	DataDir            string        `key:"data_dir"`
	ControlPlane       ControlPlane  `key:"control_plane"`
	MaxParallelJobs    int           `key:"max_parallel_jobs"`
	WorkspaceRetention time.Duration `key:"workspace_retention"`
	Labels             []string      `key:"labels"`
	Reserve            Reserve       `key:"reserve"`
	Policy             Policy        `key:"policy"`
	Sandbox            Sandbox       `key:"sandbox"`
	Environment        Environment   `key:"environment"`
	Cache              Cache         `key:"cache"`
	ShutdownGrace      time.Duration `key:"shutdown_grace"`
	Metrics            Metrics       `key:"metrics"`
	Log                Log           `key:"log"`
}

// Metrics is where the agent shows its figures (07§184).
type Metrics struct {
	Listen string `key:"listen"`
}

// ControlPlane is where the daemons are (09§281).
type ControlPlane struct {
	Endpoints  []string `key:"endpoints"`
	ServerName string   `key:"server_name"`
	TokenFile  FileRef  `key:"token_file"`
}

// Reserve is what jobs may not have of this machine (07§222).
type Reserve struct {
	CPU    forge.MilliCPU `key:"cpu"`
	Memory forge.Bytes    `key:"memory"`
	Disk   forge.Bytes    `key:"disk"`
}

// Policy is what the owner of this machine forbids (07§217). It only tightens.
type Policy struct {
	AllowHostNetwork bool           `key:"allow_host_network"`
	AllowUnconfined  bool           `key:"allow_unconfined"`
	MaxCPU           forge.MilliCPU `key:"max_cpu"`
	MaxMemory        forge.Bytes    `key:"max_memory"`
	MaxDisk          forge.Bytes    `key:"max_disk"`
	MaxProcesses     uint32         `key:"max_processes"`
	MaxRun           time.Duration  `key:"max_run"`
	MaxOffline       time.Duration  `key:"max_offline"`
}

// Sandbox is how jobs are confined.
type Sandbox struct {
	Pool       int      `key:"pool"`
	UIDBase    uint32   `key:"uid_base"`
	Rootless   bool     `key:"rootless"`
	DiskImages bool     `key:"disk_images"`
	ReadOnly   []string `key:"read_only"`
	Toolchains []string `key:"toolchains"`
}

// Cache is what is kept of objects and trees for later jobs.
type Cache struct {
	MaxBytes forge.Bytes   `key:"max_bytes"`
	MinFree  forge.Bytes   `key:"min_free"`
	MaxAge   time.Duration `key:"max_age"`
}

// Local returns the policy as the domain speaks of it.
func (p Policy) Local() forge.LocalPolicy {
	return forge.LocalPolicy{
		AllowHostNetwork: p.AllowHostNetwork, AllowUnconfined: p.AllowUnconfined,
		MostPerJob:    forge.Resources{CPU: p.MaxCPU, Memory: p.MaxMemory, Disk: p.MaxDisk},
		MostProcesses: p.MaxProcesses, LongestRun: p.MaxRun, LongestOffline: p.MaxOffline,
	}
}

// DefaultAgent returns the built-in settings.
func DefaultAgent() Agent {
	a, err := LoadAgent(Input{})
	if err != nil {
		panic("config: " + err.Error()) // our own defaults are wrong
	}
	return a
}

// Bounds of the agent's settings.
const (
	maxEndpoints  = 8
	maxJobs       = forge.MaxAttemptsPerAgent
	maxStopGrace  = 7 * 24 * time.Hour
	maxLabels     = 64
	maxPool       = 64
	minUIDBase    = 65_536 // below are the machine's own users
	maxShown      = 128    // paths in each list of the sandbox
	minCache      = forge.MiB
	minCacheAge   = time.Minute
	maxCacheAge   = 10 * 365 * 24 * time.Hour
	defaultScheme = "quic"
)

// Validate reports everything that is wrong with the settings, as forge.Problems.
func (a *Agent) Validate() error { return asError(a.problems()) }

func (a *Agent) problems() forge.Problems {
	var c check
	c.folder("data_dir", a.DataDir)
	c.controlPlane(a.ControlPlane)
	if a.MaxParallelJobs < 1 || a.MaxParallelJobs > maxJobs {
		c.wrong("max_parallel_jobs", "%d is not from 1 to %d", a.MaxParallelJobs, maxJobs)
	}
	c.labels(a.Labels)
	if a.WorkspaceRetention != 0 {
		c.wrong("workspace_retention", "this version removes the folder of a job when it ends; only 0s is possible")
	}
	c.sandbox(a.Sandbox)
	c.environment(a.Environment)
	c.between("cache.max_age", a.Cache.MaxAge, minCacheAge, maxCacheAge)
	if a.Cache.MaxBytes < minCache {
		c.wrong("cache.max_bytes", "%v is below %v", a.Cache.MaxBytes, minCache)
	}
	c.between("shutdown_grace", a.ShutdownGrace, 0, maxStopGrace)
	c.between("policy.max_run", a.Policy.MaxRun, 0, forge.MaxRunTimeout)
	c.between("policy.max_offline", a.Policy.MaxOffline, 0, forge.MaxRunTimeout)
	c.loopback("metrics.listen", a.Metrics.Listen)
	c.log(a.Log)
	return c.found
}

// loopback checks an address that only this machine may reach (07§188), or none.
func (c *check) loopback(key, address string) {
	if address == "" {
		return
	}
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err != nil || bad != nil || !ip.IsLoopback() {
		c.wrong(key, "%q is no address of this machine alone with a port, as in \"127.0.0.1:7481\"", clip(address))
		return
	}
	c.listen(key, address)
}

func (c *check) between(key string, d, low, high time.Duration) {
	if d < low || d > high {
		c.wrong(key, "%v is not from %v to %v", d, low, high)
	}
}

func (c *check) controlPlane(cp ControlPlane) {
	if len(cp.Endpoints) > maxEndpoints {
		c.wrong("control_plane.endpoints", "has %d items, more than %d", len(cp.Endpoints), maxEndpoints)
	}
	for i, text := range cp.Endpoints {
		if _, err := Endpoint(text); err != nil {
			c.wrong(fmt.Sprintf("control_plane.endpoints[%d]", i), "%v", err)
		}
	}
	if cp.ServerName != "" && !hostName(cp.ServerName) {
		c.wrong("control_plane.server_name", "%q is no host name", clip(cp.ServerName))
	}
	if cp.TokenFile != "" {
		c.folder("control_plane.token_file", string(cp.TokenFile))
	}
}

func (c *check) sandbox(s Sandbox) {
	if s.Pool < 0 || s.Pool > maxPool {
		c.wrong("sandbox.pool", "%d is not from 0 to %d", s.Pool, maxPool)
	}
	if s.UIDBase != 0 && s.UIDBase < minUIDBase {
		c.wrong("sandbox.uid_base", "%d is below %d, where the users of this machine are", s.UIDBase, minUIDBase)
	}
	c.shown("sandbox.read_only", s.ReadOnly)
	c.shown("sandbox.toolchains", s.Toolchains)
}

// shown checks paths that jobs may read, each SOURCE or SOURCE:TARGET.
func (c *check) shown(key string, paths []string) {
	if len(paths) > maxShown {
		c.wrong(key, "has %d items, more than %d", len(paths), maxShown)
	}
	for i, path := range paths {
		at := fmt.Sprintf("%s[%d]", key, i)
		source, target, placed := strings.Cut(path, ":")
		c.folder(at, source)
		if placed {
			c.folder(at, target)
		}
	}
}

func (c *check) labels(labels []string) {
	if len(labels) > maxLabels {
		c.wrong("labels", "has %d items, more than %d", len(labels), maxLabels)
	}
	seen := map[string]bool{}
	for i, label := range labels {
		key := fmt.Sprintf("labels[%d]", i)
		switch {
		case label == "" || len(label) > forge.MaxName:
			c.wrong(key, "%q is not 1 to %d characters", clip(label), forge.MaxName)
		case seen[label]:
			c.wrong(key, "%q is there twice", label)
		}
		seen[label] = true
	}
}

// Endpoint turns an endpoint as people write it, "quic://host:port" or "host:port", into host:port (09§282).
func Endpoint(text string) (string, error) {
	wrong := fmt.Errorf(`%q is not an endpoint, as in "quic://daemon.example.org:7443"`, clip(text))
	address := text
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		if u.Scheme != defaultScheme || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
			return "", wrong
		}
		address = u.Host
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || !hostName(host) {
		return "", wrong
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", wrong
	}
	return net.JoinHostPort(host, port), nil
}
