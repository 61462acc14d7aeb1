// Package edgestest is a test kit.
package edgestest
