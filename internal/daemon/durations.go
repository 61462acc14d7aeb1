package daemon

import (
	"sync"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// maxCourses bounds the attempts whose turns are timed at once. What comes beyond is not timed.
const maxCourses = 1 << 14

// durations is how long attempts take from one turn to the next (07§185), as this daemon hears of the turns: a cut or a
// restart of the agent counts, and what was under way when the daemon started is not timed. Its methods may be called by
// several goroutines at once.
type durations struct {
	accept, prepare, upload, cancel *telemetry.Histogram
	now                             func() forge.Instant

	mu      sync.Mutex
	courses map[forge.JobID]*course // of the open attempt of each job
}

// course is when each turn of an attempt was taken; zero: not yet.
type course struct {
	attempt                                 forge.AttemptID
	offered, accepted, uploading, cancelled forge.Instant
}

func newDurations(m *telemetry.Metrics) *durations {
	short := []float64{.005, .02, .1, .5, 1, 5, 15, 60, 300}
	return &durations{
		accept:  m.Histogram("forgeyard_attempt_accept_seconds", "From an offer to its acceptance.", short),
		prepare: m.Histogram("forgeyard_attempt_prepare_seconds", "From the acceptance to the start of the workload.", short),
		upload:  m.Histogram("forgeyard_attempt_upload_seconds", "From the end of the workload to its result, with all that had to be sent before.", short),
		cancel:  m.Histogram("forgeyard_attempt_cancel_seconds", "From a cancel to the end of the attempt that ran.", short),
		now:     clock.Boot,
		courses: map[forge.JobID]*course{},
	}
}

// took observes the time since a turn that was seen.
func took(h *telemetry.Histogram, from, to forge.Instant) {
	if from != 0 {
		h.Observe(to.Sub(from).Seconds())
	}
}

// offered begins the course of an attempt.
func (d *durations) offered(c *authority.Offer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.courses) < maxCourses {
		d.courses[c.Job] = &course{attempt: c.Attempt, offered: d.now()}
	}
}

// ofLocked returns the course of an attempt; nil if it is not timed.
func (d *durations) ofLocked(a forge.AttemptContext) *course {
	if c := d.courses[a.Job]; c != nil && c.attempt == a.Attempt {
		return c
	}
	return nil
}

// accepted takes the turn from Offered.
func (d *durations) accepted(a forge.AttemptContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.ofLocked(a); c != nil && c.accepted == 0 {
		c.accepted = d.now()
		took(d.accept, c.offered, c.accepted)
	}
}

// phase takes the turns to Running and Uploading.
func (d *durations) phase(a forge.AttemptContext, to forge.AttemptState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.ofLocked(a)
	if c == nil {
		return
	}
	switch to {
	case forge.AttemptRunning:
		took(d.prepare, c.accepted, d.now())
		c.accepted = 0 // once, however often the turn is told
	case forge.AttemptUploading:
		if c.uploading == 0 {
			c.uploading = d.now()
		}
	}
}

// cancelling notes that a user asked for the end of jobs.
func (d *durations) cancelling(jobs []forge.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range jobs {
		if c := d.courses[id]; c != nil && c.cancelled == 0 {
			c.cancelled = d.now()
		}
	}
}

// ended takes the last turn. Only one with a result has been uploaded.
func (d *durations) ended(a forge.AttemptContext, result bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.ofLocked(a)
	if c == nil {
		return
	}
	delete(d.courses, a.Job)
	now := d.now()
	took(d.cancel, c.cancelled, now)
	if result {
		took(d.upload, c.uploading, now)
	}
}
