package sandbox

import (
	"errors"
	"testing"
)

func TestALauncherOfAnotherReleaseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		says []Answer
		want *StrangerError
	}{
		"of this release":       {[]Answer{{Speaks: Revision}, {Ready: &Report{}}}, nil},
		"of another":            {[]Answer{{Speaks: Revision + 1}, {Ready: &Report{}}}, &StrangerError{Speaks: Revision + 1}},
		"that does not say":     {[]Answer{{Ready: &Report{}}}, &StrangerError{}},
		"of another, and fails": {[]Answer{{Speaks: 1}, {Failed: "what is Rootless?"}}, &StrangerError{Speaks: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Launcher{ready: make(chan error, 1)}
			for i := range c.says {
				l.hear(&c.says[i], nil)
			}
			err := <-l.ready
			var stranger *StrangerError
			if errors.As(err, &stranger) != (c.want != nil) || stranger != nil && *stranger != *c.want {
				t.Errorf("%v; want %v", err, c.want)
			}
		})
	}
}
