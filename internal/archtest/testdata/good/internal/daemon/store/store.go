// Package store is the home of SQL.
package store

import (
	_ "database/sql"

	_ "modernc.org/sqlite"
)
