// Package greet makes lines that greet.
package greet

import "errors"

// ErrNobody means that a name is empty.
var ErrNobody = errors.New("there is nobody to greet")

// Line greets one.
func Line(name string) (string, error) {
	if name == "" {
		return "", ErrNobody
	}
	return "Good day, " + name + ".", nil
}
