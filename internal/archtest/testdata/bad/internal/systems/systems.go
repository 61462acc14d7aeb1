// Package systems differs between systems.
package systems
