package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
)

// Outputs that the daemon has lost after it had them.

// deliveredOnce is an attempt with one output, named good, that was delivered. again says what comes of every later delivery.
func deliveredOnce(t *testing.T, again func(context.Context) error) (*story, *shelf) {
	t.Helper()
	first := true
	objects := &shelf{deliver: func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		return again(ctx)
	}}
	s := begin(t, leaving(forge.Succeeded, "good"), func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs = objects, []forge.Output{output("good", forge.WhenSuccess, "good")}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	if got := s.want(t, "delivered"); len(got.outputs) != 1 {
		t.Fatalf("delivered %+v", got)
	}
	if _, open := objects.given(); open != 1 {
		t.Fatalf("%d outputs are kept while their completion is not answered", open)
	}
	return s, objects
}

func TestAnOutputIsDeliveredAgainAsOftenAsItIsMissed(t *testing.T) {
	s, objects := deliveredOnce(t, func(context.Context) error { return nil })
	for range 3 {
		s.Redeliver(time.Minute)
		if err := s.want(t, "redelivered").err; err != nil {
			t.Fatal(err)
		}
	}
	s.end(t)
	if _, open := objects.given(); open != 0 || objects.delivers != 4 {
		t.Errorf("%d outputs are kept after the clean-up; it was delivered %d times", open, objects.delivers)
	}
}

// TestWhatThisMachineHasLostTooIsCapturedAnew: the job's files are kept until the completion is answered (07§88), so an object
// that is gone from the cache as well, or damaged there, is made once more. No step runs again (07§87).
func TestWhatThisMachineHasLostTooIsCapturedAnew(t *testing.T) {
	for name, loss := range map[string]error{
		"gone": fmt.Errorf("upload: %w", cas.ErrNotFound), "damaged": &cas.CorruptError{Err: errors.New("flipped")},
	} {
		t.Run(name, func(t *testing.T) {
			var objects *shelf
			var all map[digest.Ref]bool
			calls := 0
			s, objects := deliveredOnce(t, func(context.Context) error {
				objects.mu.Lock()
				defer objects.mu.Unlock()
				if calls++; calls == 1 {
					all, objects.objects = objects.objects, nil
					return loss
				}
				return nil
			})
			s.Redeliver(time.Minute)
			if err := s.want(t, "redelivered").err; err != nil {
				t.Fatal(err)
			}
			if len(all) != 2 || len(objects.objects) != len(all) || calls != 2 {
				t.Errorf("of %d objects %d are there again after %d deliveries", len(all), len(objects.objects), calls)
			}
			s.end(t)
		})
	}
}

func TestFilesThatHaveChangedAreNotPassedOffAsTheOutput(t *testing.T) {
	s, _ := deliveredOnce(t, func(context.Context) error { return cas.ErrNotFound })
	files, err := filepath.Glob(filepath.Join(s.work, "*", forge.SourceDir, "good"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Redeliver(time.Minute)
	if err := s.want(t, "redelivered").err; err == nil || !strings.Contains(err.Error(), "output good was b3:") {
		t.Errorf("the error is %v", err)
	}
	s.end(t)
}

func TestADeliveryThatIsRepeatedHasItsTime(t *testing.T) {
	s, _ := deliveredOnce(t, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	s.Redeliver(50 * time.Millisecond)
	if err := s.want(t, "redelivered").err; err == nil || !strings.Contains(err.Error(), "not uploaded within 50ms") {
		t.Errorf("the error is %v", err)
	}
	s.end(t)
}

func TestACleanUpGivesARepeatedDeliveryUp(t *testing.T) {
	uploading := make(chan struct{})
	s, objects := deliveredOnce(t, func(ctx context.Context) error {
		close(uploading)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	s.Redeliver(time.Hour)
	<-uploading
	s.end(t)
	if _, open := objects.given(); open != 0 {
		t.Errorf("%d outputs are kept after the clean-up", open)
	}
}

// TestAnAgentThatEndsKeepsNoOutput: its next process finds the attempt lost.
func TestAnAgentThatEndsKeepsNoOutput(t *testing.T) {
	uploading := make(chan struct{})
	s, objects := deliveredOnce(t, func(ctx context.Context) error {
		close(uploading)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	s.Redeliver(time.Hour)
	<-uploading
	s.cancel()
	<-s.ended
	if _, open := objects.given(); open != 0 {
		t.Errorf("%d outputs are kept", open)
	}
}

// TestACacheWithoutRoomCostsTheOutputThatNeedsItAndNoOther: what was taken of it is given up at once, not at the attempt's end.
func TestACacheWithoutRoomCostsTheOutputThatNeedsItAndNoOther(t *testing.T) {
	objects := &shelf{full: true}
	s := begin(t, leaving(forge.Succeeded, "good", "bad"), func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs = objects, []forge.Output{output("bad", forge.WhenAlways, "bad"), output("good", forge.WhenSuccess, "good")}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	if got := s.want(t, "delivered"); got.capture != forge.UploadFailed || len(got.outputs) != 1 || got.outputs[0].Output != 1 {
		t.Errorf("delivered %+v", got)
	}
	if _, open := objects.given(); open != 1 || objects.delivers != 1 {
		t.Errorf("%d outputs are kept, %d were uploaded", open, objects.delivers)
	}
	if log := s.log(t); !strings.Contains(log, cas.ErrFull.Error()) {
		t.Errorf("the log does not say why: %q", log)
	}
	s.end(t)
}

// TestNothingIsUploadedOfAnOutputThatIsRefused: its files would take the job's share of the daemon's store, and the cache's.
func TestNothingIsUploadedOfAnOutputThatIsRefused(t *testing.T) {
	objects := &shelf{}
	large := output("large", forge.WhenAlways, "good", "bad", "any")
	large.MaxFiles = 2
	s := begin(t, leaving(forge.Succeeded, "good", "bad", "any"), func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs = objects, []forge.Output{large, output("good", forge.WhenSuccess, "good")}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	if got := s.want(t, "delivered"); got.capture != forge.OutputTooLarge || len(got.outputs) != 1 || got.outputs[0].Output != 1 {
		t.Errorf("delivered %+v", got)
	}
	if _, open := objects.given(); open != 1 || objects.delivers != 1 {
		t.Errorf("%d outputs are kept, %d were uploaded", open, objects.delivers)
	}
	s.end(t)
}
