// Command greeter greets whoever it is given, all at once.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"example.org/greeter/internal/greet"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-version" {
		fmt.Println(version)
		return
	}
	lines := make([]string, len(os.Args)-1)
	var all errgroup.Group
	for i, name := range os.Args[1:] {
		all.Go(func() (err error) {
			lines[i], err = greet.Line(name)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "greeter:", err)
		os.Exit(1)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
}
