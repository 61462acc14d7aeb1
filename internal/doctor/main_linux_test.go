package doctor

import (
	"os"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

// childArg makes this binary the child that mounts.
const childArg = "doctor-child"

func TestMain(m *testing.M) {
	launch.Main(func(launch.Room) int { return 0 })
	if len(os.Args) == 2 && os.Args[1] == childArg {
		if err := Child(os.Stdin, os.Stdout); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
