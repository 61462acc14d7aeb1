package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// must runs a rule that has to have its effect.
func must(t rapid.TB, s Rules, cmd authority.Command) authority.Answer {
	t.Helper()
	answer, err := s.Do(bg, store.ClassLease, cmd)
	if err != nil || !answer.Done {
		t.Fatalf("%T: %+v, %v", cmd, answer, err)
	}
	return answer
}

// parallel runs the commands at once and returns their answers in order.
func parallel(t *testing.T, s Rules, commands []authority.Command) []authority.Answer {
	t.Helper()
	answers, errs := make([]authority.Answer, len(commands)), make([]error, len(commands))
	var wait sync.WaitGroup
	for i, cmd := range commands {
		wait.Go(func() { answers[i], errs[i] = s.Do(bg, store.ClassState, cmd) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%T: %v", commands[i], err)
		}
	}
	return answers
}

func countDone(answers []authority.Answer) int {
	n := 0
	for _, a := range answers {
		if a.Done {
			n++
		}
	}
	return n
}

// offeredOnce: however many offers of a job arrive at once, one gets it.
func offeredOnce(t *testing.T, s Rules) {
	w := newWorld(1)
	w.build(t, s)
	var offers []authority.Command
	for _, p := range []int{0, 2} { // the first process of each runner
		must(t, s, &w.sessions[p])
		for range 8 {
			offers = append(offers, w.offerOf(p, w.jobs[0]))
		}
	}
	if n := countDone(parallel(t, s, offers)); n != 1 {
		t.Fatalf("%d of %d offers of one job had their effect", n, len(offers))
	}
	if attempts, err := s.Attempts(bg, w.jobs[0]); err != nil || len(attempts) != 1 {
		t.Fatalf("the job has attempts %+v, %v; want one", attempts, err)
	}
}

func (w *world) offerOf(process int, job forge.JobID) *authority.Offer {
	return &authority.Offer{
		Fence: fenceOf(&w.sessions[process]), Job: job, Attempt: make1[forge.AttemptID](w), Lease: make1[forge.LeaseID](w),
	}
}

// slotsHold: a runner of two slots gets two of three jobs that are offered to it at once.
func slotsHold(t *testing.T, s Rules) {
	w := newWorld(2)
	w.build(t, s)
	must(t, s, &w.sessions[0])
	var offers []authority.Command
	for _, job := range w.jobs {
		for range 4 {
			offers = append(offers, w.offerOf(0, job))
		}
	}
	if n := countDone(parallel(t, s, offers)); n != 2 {
		t.Fatalf("%d offers had their effect on a runner with 2 slots", n)
	}
}

// refusedChangesNothing: a rule that the unique index refuses leaves no row behind, and the store goes on.
func refusedChangesNothing(t *testing.T, s Rules) {
	w, m := newWorld(3), NewModel()
	w.build(t, s, m)
	for _, r := range []Rules{s, m} {
		must(t, r, &w.sessions[0])
	}
	first, second := w.offerOf(0, w.jobs[0]), w.offerOf(0, w.jobs[1])
	second.Attempt = first.Attempt
	for _, r := range []Rules{s, m} {
		must(t, r, first)
		if answer, err := r.Do(bg, store.ClassState, second); err == nil {
			t.Fatalf("an attempt's id was taken twice: %+v", answer)
		}
	}
	w.compare(t, second, s, m)
	for _, r := range []Rules{s, m} {
		must(t, r, &authority.Touch{Fence: first.Fence})
	}
}

// oneOrder runs commands of several callers at once: there is an order of them, in keeping with who was answered before who
// asked, in which the model gives the same answers.
func oneOrder(t *testing.T, s Rules) {
	const callers, histories = 4, 12
	for h := range uint64(histories) {
		w, m := newWorld(100+h), NewModel()
		w.build(t, s, m)
		for _, r := range []Rules{s, m} {
			must(t, r, &w.sessions[0])
			must(t, r, &w.sessions[2])
		}
		history := w.race(t, s, callers)
		model := porcupine.Model{
			Init: func() any { return m.clone() },
			Equal: func(a, b any) bool {
				return cmp.Equal(a.(*Model).rows, b.(*Model).rows, cmp.AllowUnexported(tables{}), cmpopts.EquateEmpty(), cmpopts.EquateComparable(folderKey{}, refKey{}))
			},
			Step: func(state, in, out any) (bool, any) {
				next := state.(*Model).clone()
				answer, err := next.Do(bg, store.ClassState, in.(authority.Command))
				return err == nil && cmp.Equal(answer, out, cmpopts.EquateEmpty()), next
			},
			DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		}
		if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Ok {
			t.Fatalf("history %d has no order in which it is right: %v", h, result)
		}
	}
}

// race lets each caller offer, accept, renew and give back jobs as fast as it can.
func (w *world) race(t *testing.T, s Rules, callers int) []porcupine.Operation {
	scripts := make([][]authority.Command, callers)
	for i := range scripts {
		process := 2 * (i % 2)
		for round := range 3 {
			offer := w.offerOf(process, w.jobs[(i+round)%2])
			c := forge.AttemptContext{
				Job: offer.Job, Attempt: offer.Attempt, Lease: offer.Lease, Spec: w.newRun().Jobs[(i+round)%2].Draft,
				Runner: offer.Fence.Runner, Session: offer.Fence.Session,
			}
			scripts[i] = append(scripts[i], offer,
				&authority.Claim{Fence: offer.Fence, Context: c, Phase: forge.AttemptOffered},
				&authority.Heartbeat{Fence: offer.Fence, Leases: []forge.LeaseID{c.Lease}, Watched: make([]authority.Watched, 1)},
				&authority.Reject{Fence: offer.Fence, Context: c, Reason: forge.RejectOther})
		}
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	var wait sync.WaitGroup
	begin := time.Now()
	for i, script := range scripts {
		wait.Go(func() {
			for _, cmd := range script {
				asked := time.Since(begin)
				answer, err := s.Do(bg, store.ClassState, cmd)
				heard := time.Since(begin)
				if err != nil {
					t.Errorf("%T: %v", cmd, err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: i, Input: cmd, Call: int64(asked), Output: answer, Return: int64(heard)})
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return history
}
