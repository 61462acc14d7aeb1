package main

import "github.com/forgeyard/forgeyard/internal/forge"

var codec func(forge.Frame) (forge.Frame, error)
