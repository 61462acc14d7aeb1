// Try uses a test kit.
package main

import _ "example.com/good/internal/core/coretest"

func main() {}
