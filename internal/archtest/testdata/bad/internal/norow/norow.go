// want table "package internal/norow has no row"

// Package norow is not in the table.
package norow
