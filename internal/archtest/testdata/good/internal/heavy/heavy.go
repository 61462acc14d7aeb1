// Package heavy measures.
package heavy

import _ "os"

func start() { go start() }
