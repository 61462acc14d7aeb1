//go:build !linux

package main

import "log"

func main() { log.Fatal("chaos needs Linux: it looks into /proc, and kills by it") }
