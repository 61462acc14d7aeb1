// Package coretest is a test kit.
package coretest

import _ "example.com/good/internal/core"
