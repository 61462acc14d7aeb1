//go:build !linux

package main

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

func sit(context.Context, string, string, string) (during, after [][]emulator.Cell, err error) {
	return nil, nil, errors.New("terminals of Linux are needed")
}

// width is that of the terminal.
const width = 84
