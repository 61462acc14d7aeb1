//go:build !linux

package main

import "log"

func main() { log.Fatal("bench needs Linux: it reads /proc") }
