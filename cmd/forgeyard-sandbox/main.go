// Command forgeyard-sandbox is the launcher of an agent's sandboxes, and the first process of each. Nobody calls it but the
// agent, which looks for it in its own folder and is all of that itself where it finds none.
//
// It is a program of its own because each sandbox begins with the start of one, and an agent's takes four times as long: it
// initialises packages for the network and for metrics that nothing in a sandbox uses.
package main

import (
	"fmt"
	"os"

	"github.com/forgeyard/forgeyard/internal/executor/native"
)

func main() {
	native.Main()
	native.RefuseUnsafe()
	fmt.Fprintln(os.Stderr, "forgeyard-sandbox belongs to forgeyard-agent, which starts it by itself: leave it in the same folder")
	os.Exit(2)
}
