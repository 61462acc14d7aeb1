// Package clock reads the clock in every way that there is.
package clock

import (
	"time"
	. "time"
	when "time"
)

func direct() time.Time { return time.Now() } // want clock "time.Now"

func alias() time.Time { return when.Now() } // want clock "time.Now"

func dot() Time { return Now() } // want clock "time.Now"

var value = time.Now // want clock "time.Now"

func since(t time.Time) time.Duration { return time.Since(t) } // want clock "time.Since"

func until(t time.Time) time.Duration { return time.Until(t) } // want clock "time.Until"

func wait() {
	time.Sleep(1)              // want clock "time.Sleep"
	_ = time.After(1)          // want clock "time.After"
	time.AfterFunc(1, func() { // want clock "time.AfterFunc"
	})
	_ = time.NewTimer(1)  // want clock "time.NewTimer"
	_ = time.NewTicker(1) // want clock "time.NewTicker"
	_ = time.Tick(1)      // want clock "time.Tick"
}

var timer *time.Timer // want clock "time.Timer"

func zone(t time.Time) {
	_ = t.Local()                   // want clock "Local"
	_ = t.In(time.Local)            // want clock "time.Local"
	_, _ = time.LoadLocation("CET") // want clock "time.LoadLocation"
}
