//go:build !linux

package disk

import "errors"

func syncAll(string) error { return errors.ErrUnsupported }
