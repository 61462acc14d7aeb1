// Package broken does not type-check.
package broken

var number int = "text" // want load "does not type-check"
