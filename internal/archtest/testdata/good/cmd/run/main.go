// Run wires.
package main

import _ "example.com/good/internal/shell"

func main() {}
