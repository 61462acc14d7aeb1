// Package output prints.
package output

import (
	"fmt"
	"log/slog"
)

func print() {
	fmt.Println("x") // want output "fmt.Println"
	fmt.Printf("x")  // want output "fmt.Printf"
	println("x")     // want output "println"
	slog.Info("x")   // want output "slog.Info"
}
