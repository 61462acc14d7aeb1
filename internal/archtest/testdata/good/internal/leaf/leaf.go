// Package leaf hashes.
package leaf

import _ "io"
