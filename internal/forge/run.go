package forge

// Bounds of a run.
const (
	MaxJobsPerRun = 4096
	MaxNeeds      = 256
)

// Run is one execution of a pipeline.
type Run struct {
	ID      RunID
	Project ProjectName
	State   RunState
	Trust   TrustClass // of whoever submitted it
	Created WallTime
}

// Validate checks that everything is there.
func (r Run) Validate() error {
	var c checker
	var root *where
	if r.ID.IsZero() {
		c.add(root.in("id"), "is missing")
	}
	c.refName(root.in("project"), string(r.Project))
	c.known(root.in("state"), r.State >= RunPlanned && r.State <= RunError, r.State)
	c.known(root.in("trust"), r.Trust.Valid(), r.Trust)
	return c.err()
}

// Validate checks that p can be the name of a project.
func (p ProjectName) Validate() error {
	var c checker
	c.refName(nil, string(p))
	return c.err()
}

// JobNeed names another job that must end first: all legs of it must have ended well, unless it is optional and they were skipped.
type JobNeed struct {
	Job      JobKey
	Optional bool
}

// Job is one node in the graph of a run.
type Job struct {
	ID    JobID
	Run   RunID
	Key   JobKey
	Leg   Leg
	Needs []JobNeed
	State JobState
	Spec  JobSpecID // zero until the job is planned, which is when its needs have ended
}

// Validate checks the job by itself.
func (j Job) Validate() error {
	var c checker
	c.job(nil, &j)
	return c.err()
}

func (c *checker) job(at *where, j *Job) {
	if j.ID.IsZero() {
		c.add(at.in("id"), "is missing")
	}
	if j.Run.IsZero() {
		c.add(at.in("run"), "is missing")
	}
	c.name(at.in("key"), string(j.Key))
	c.leg(at, j.Leg)
	c.known(at.in("state"), j.State >= JobWaiting && j.State <= JobSkipped, j.State)
	if planned := j.State >= JobReady && j.State <= JobSucceeded; planned && j.Spec.IsZero() {
		c.add(at.in("spec"), "is missing from a job that is %v", j.State)
	}
	if !c.count(at.in("needs"), len(j.Needs), MaxNeeds) {
		return
	}
	for i, need := range j.Needs {
		c.name(at.item("needs", i).in("job"), string(need.Job))
	}
	unique(c, at, "needs", j.Needs, func(n JobNeed) JobKey { return n.Job })
}

// Validate checks that k can be the key of a job.
func (k JobKey) Validate() error {
	var c checker
	c.name(nil, string(k))
	return c.err()
}
