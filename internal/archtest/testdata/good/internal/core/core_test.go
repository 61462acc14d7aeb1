package core_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"example.com/good/internal/core"
	_ "example.com/good/internal/core/coretest"
)

func TestStep(t *testing.T) {
	for key := range map[string]int{"a": rand.IntN(2)} {
		go core.Step(time.Now(), map[string]int{key: 1}, os.Stdout)
	}
}
