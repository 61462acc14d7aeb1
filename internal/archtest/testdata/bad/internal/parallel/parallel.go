// Package parallel starts things and waits for them.
package parallel

import (
	"iter"
	"reflect"
	"sync"
	_ "sync/atomic" // want outside "imports sync/atomic"
)

var mu sync.Mutex // want parallel "sync.Mutex"

var pool = sync.Pool{} // want parallel "sync.Pool"

func start() {
	go start() // want parallel "go statement"
}

func talk(
	c chan int, // want parallel "channel type"
) {
	c <- 1   // want parallel "a send"
	_ = <-c  // want parallel "a receive"
	select { // want parallel "select statement"
	default:
	}
	for range c { // want parallel "range over a channel"
	}
}

func coroutine(seq iter.Seq[int]) {
	iter.Pull(seq)               // want parallel "iter.Pull"
	reflect.Select(nil)          // want parallel "reflect.Select"
	_ = reflect.MakeChan(nil, 0) // want parallel "reflect.MakeChan"
	var group sync.WaitGroup     // want parallel "sync.WaitGroup"
	group.Wait()                 // want parallel "Wait"
}
