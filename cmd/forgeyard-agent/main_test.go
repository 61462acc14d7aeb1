package main

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func TestScripts(t *testing.T) { clitest.Run(t) }
