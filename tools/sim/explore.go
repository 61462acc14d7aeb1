package main

import (
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/sim"
)

// runExplore tries every run of the smallest worlds with up to bound deviations from their natural order.
func runExplore(bound, most int) int {
	code := 0
	for _, shape := range sim.Explorables {
		start := time.Now()
		x := sim.Explore(shape, bound, most)
		whole := "exhausted"
		if !x.Exhausted {
			whole = "not exhausted"
		}
		fmt.Printf("%-14s %d deviations: %8d runs, %9d states, at most %d steps, %s, %v\n",
			shape.Name, bound, x.Runs, x.States, x.Longest, whole, time.Since(start).Round(time.Millisecond))
		if x.Violation == nil {
			continue
		}
		code = 1
		fmt.Printf("violates %v, deviating at %v\n", x.Violation, x.Script)
		for _, line := range sim.Retrace(shape, x.Script) {
			fmt.Println(line)
		}
	}
	return code
}
