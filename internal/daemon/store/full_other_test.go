//go:build !linux

package store_test

import "errors"

func replaceLog(string, string) error { return errors.ErrUnsupported }
