// Package storetest tests a store.
package storetest

import (
	_ "database/sql"

	_ "example.com/good/internal/daemon/store"
)
