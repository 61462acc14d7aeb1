package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

const (
	// leaseFresh is how long it is believed that a lease holds. It is asked about every object.
	leaseFresh = time.Second
	// maxUploaded bounds the objects of which it is remembered that an attempt has uploaded them. More of them stay: they
	// only cannot be read back.
	maxUploaded = 1 << 16
	// maxAttempts is how many attempts are remembered before those that have not been heard of are forgotten.
	maxAttempts = 1024
	// quotaSlack is what the folders of outputs may take besides their files, and quotaFile for each file.
	quotaSlack = 16 << 20
	quotaFile  = 1 << 10
)

// ErrForeign says that there is no such attempt, or not of this runner and lease. To its peer it is as if it did not exist.
var ErrForeign = errors.New("no such attempt of this runner")

// Scope is what one attempt may have and give. It implements remote.Scope.
type Scope struct {
	objects *Objects
	project *Project
	of      forge.AttemptContext
	spec    forge.JobSpec
	quota   uint64

	mu       sync.Mutex
	checked  time.Time  // when the lease was last seen to hold
	inputs   []*closure // nil: not looked up yet
	uploaded map[digest.Ref]struct{}
	spent    uint64
	used     time.Time
}

// Admit returns the scope of an attempt as the header of a stream names it: by its id and its lease, from its runner. The
// error is ErrForeign, or remote.ErrStale where the lease has ended.
func (o *Objects) Admit(ctx context.Context, runner forge.RunnerID, attempt forge.AttemptID, lease forge.LeaseID) (*Scope, error) {
	s, err := o.scope(ctx, attempt)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, ErrForeign
	case err != nil:
		return nil, err
	case s.of.Runner != runner || s.of.Lease != lease:
		return nil, ErrForeign
	}
	return s, s.live(ctx)
}

// Attempt returns the scope of an attempt, for one who has its whole context. The errors are those of Admit.
func (o *Objects) Attempt(ctx context.Context, of forge.AttemptContext) (*Scope, error) {
	s, err := o.Admit(ctx, of.Runner, of.Attempt, of.Lease)
	if err == nil && s.of != of {
		return nil, ErrForeign
	}
	return s, err
}

// Forget drops what is remembered of an attempt that has ended. It need not be called.
func (o *Objects) Forget(attempt forge.AttemptID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.attempts, attempt)
}

// scope returns an attempt's scope, whatever became of its lease. All who ask get the same one.
func (o *Objects) scope(ctx context.Context, attempt forge.AttemptID) (*Scope, error) {
	o.mu.Lock()
	s := o.attempts[attempt]
	o.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := o.load(ctx, attempt)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if earlier := o.attempts[attempt]; earlier != nil {
		return earlier, nil
	}
	o.forgetOldLocked()
	o.attempts[attempt] = s
	return s, nil
}

// forgetOldLocked makes room: first of attempts that were not heard of for a while, then of any.
func (o *Objects) forgetOldLocked() {
	if len(o.attempts) < maxAttempts {
		return
	}
	for id, s := range o.attempts {
		if s.idle(10 * time.Minute) {
			delete(o.attempts, id)
		}
	}
	for id := range o.attempts {
		if len(o.attempts) < maxAttempts {
			return
		}
		delete(o.attempts, id)
	}
}

// load reads an attempt's rows.
func (o *Objects) load(ctx context.Context, attempt forge.AttemptID) (*Scope, error) {
	var a store.Attempt
	var job store.Job
	var bytes []byte
	err := o.rows.View(ctx, func(v *store.View) (err error) {
		if a, err = v.Attempt(attempt); err != nil {
			return err
		}
		if job, err = v.Job(a.Lease.Context.Job); err != nil {
			return err
		}
		bytes, err = v.Spec(a.Lease.Context.Spec)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read attempt %v: %w", attempt, err)
	}
	spec, err := jobspec.Open(a.Lease.Context.Spec, bytes)
	if err != nil {
		return nil, fmt.Errorf("read the specification of attempt %v: %w", attempt, err)
	}
	return &Scope{
		objects: o, project: o.Project(job.Project), of: a.Lease.Context, spec: spec, quota: quotaOf(spec.Outputs),
		uploaded: map[digest.Ref]struct{}{}, used: time.Now(),
	}, nil
}

// quotaOf is how many bytes of different objects an attempt may upload.
func quotaOf(outputs []forge.Output) uint64 {
	if len(outputs) == 0 {
		return 0
	}
	quota := uint64(quotaSlack)
	for _, out := range outputs {
		quota += uint64(out.MaxBytes) + quotaFile*uint64(out.MaxFiles)
	}
	return quota
}

func (s *Scope) idle(span time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.used) > span
}

// Project is the name of the attempt's project.
func (s *Scope) Project() forge.ProjectName { return s.project.name }

// live returns remote.ErrStale once the lease has ended.
func (s *Scope) live(ctx context.Context) error {
	now := time.Now()
	s.mu.Lock()
	s.used = now
	fresh := now.Sub(s.checked) < leaseFresh && !s.checked.IsZero()
	s.mu.Unlock()
	if fresh {
		return nil
	}
	var a store.Attempt
	err := s.objects.rows.View(ctx, func(v *store.View) (err error) {
		a, err = v.Attempt(s.of.Attempt)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("read the lease of attempt %v: %w", s.of.Attempt, err)
	case a.Lease.State != forge.LeaseAccepted:
		return remote.ErrStale
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = now
	return nil
}

// Open implements cas.Source. Whether an object that is not the attempt's exists is never looked up.
func (s *Scope) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if err := s.live(ctx); err != nil {
		return nil, err
	}
	mine, err := s.mine(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !mine {
		return nil, cas.ErrNotFound
	}
	return s.project.Open(ctx, ref)
}

// mine reports whether an attempt may read an object. All that it has is searched, whatever was found before.
func (s *Scope) mine(ctx context.Context, ref digest.Ref) (bool, error) {
	inputs, err := s.closures(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	_, mine := s.uploaded[ref]
	s.mu.Unlock()
	for _, c := range inputs {
		if c.has(ref) {
			mine = true
		}
	}
	return mine, nil
}

// closures returns what lies below the inputs.
func (s *Scope) closures(ctx context.Context) ([]*closure, error) {
	s.mu.Lock()
	inputs := s.inputs
	s.mu.Unlock()
	if inputs != nil {
		return inputs, nil
	}
	inputs = []*closure{}
	for _, in := range s.spec.Inputs {
		c, err := s.objects.closure(ctx, s.project, in.Tree.Root)
		if err != nil {
			return nil, s.broken(in, err)
		}
		inputs = append(inputs, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs = inputs
	return inputs, nil
}

// broken says that an input cannot be had. It was whole when the run was submitted, so the store has been damaged since.
func (s *Scope) broken(in forge.Input, err error) error {
	var missing *MissingError
	if !errors.As(err, &missing) {
		return fmt.Errorf("input %s: %w", in.Mount, err)
	}
	s.objects.log.Error("an input is not whole any more", "attempt", s.of.Attempt.String(), "input", in.Mount, "error", err)
	return &cas.CorruptError{Ref: missing.Some[0], Where: "the daemon's store", Err: err}
}

// Missing implements cas.Sink: what the attempt's project does not hold.
func (s *Scope) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	if err := s.live(ctx); err != nil {
		return nil, err
	}
	return s.project.Missing(ctx, refs)
}

// Put implements cas.Sink.
func (s *Scope) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if err := s.live(ctx); err != nil {
		return err
	}
	back, err := s.spend(ref)
	if err != nil {
		return err
	}
	if err := s.project.Put(ctx, ref, r); err != nil {
		back()
		return err
	}
	s.note(ref)
	return nil
}

// spend takes an object's bytes from the quota, unless they were before. back returns them.
func (s *Scope) spend(ref digest.Ref) (back func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.uploaded[ref]; again {
		return func() {}, nil
	}
	if ref.Bytes > s.quota-s.spent {
		return nil, fmt.Errorf("%w: %d bytes in all", remote.ErrQuota, s.quota)
	}
	s.spent += ref.Bytes
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spent -= ref.Bytes
	}), nil
}

func (s *Scope) note(ref digest.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uploaded) < maxUploaded {
		s.uploaded[ref] = struct{}{}
	}
}

// Part implements remote.Scope.
func (s *Scope) Part(ctx context.Context, ref digest.Ref, yield func()) (remote.Part, error) {
	if err := s.live(ctx); err != nil {
		return nil, err
	}
	back, err := s.spend(ref)
	if err != nil {
		return nil, err
	}
	p, err := s.project.part(ctx, ref, s.of.Attempt.String(), yield)
	if err != nil {
		back()
		return nil, err
	}
	return &spending{Part: p, scope: s, ref: ref, back: back}, nil
}

// spending is a part whose bytes count against a quota while it arrives, and for good once it has.
type spending struct {
	remote.Part
	scope *Scope
	ref   digest.Ref
	back  func()
	done  bool
}

// Commit implements remote.Part. The lease may have ended while the object came.
func (p *spending) Commit(ctx context.Context) error {
	if err := p.scope.live(ctx); err != nil {
		return err
	}
	if err := p.Part.Commit(ctx); err != nil {
		return err
	}
	p.done = true
	p.scope.note(p.ref)
	return nil
}

// Close implements remote.Part.
func (p *spending) Close() error {
	if !p.done {
		p.back()
	}
	return p.Part.Close()
}
