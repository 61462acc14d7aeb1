// Package outside reaches outside.
package outside

import (
	_ "context"      // want outside "imports context"
	_ "database/sql" // want outside "imports database/sql" // want driver "imports database/sql"
	_ "io"           // want outside "imports io"
	_ "io/fs"        // want outside "imports io/fs"
	_ "log"          // want outside "imports log"
	_ "net"          // want outside "imports net"
	_ "os"           // want outside "imports os"
	_ "runtime"      // want outside "imports runtime"
	_ "syscall"      // want outside "imports syscall"
	_ "unsafe"       // want outside "imports unsafe"

	_ "example.com/bad/internal/leaf" // want import "internal/outside may not import internal/leaf"
)
