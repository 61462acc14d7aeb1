// Package sqlite stands in for the module of that name.
package sqlite

// Driver is a driver.
type Driver struct{}
