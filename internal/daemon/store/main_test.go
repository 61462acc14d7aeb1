package store_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		child(dir, os.Getenv(childStory))
		return
	}
	goleak.VerifyTestMain(m)
}
