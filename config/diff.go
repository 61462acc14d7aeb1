package config

import (
	"reflect"
	"slices"
)

// Changes compares settings that are in force with settings that were read anew, and names the keys that differ: those
// that may take effect while the program runs (07§220), and those for which it must be restarted.
func Changes[T Daemon | Agent](now, next *T) (safe, restart []string) {
	after := leaves(reflect.ValueOf(next).Elem(), "")
	for i, l := range leaves(reflect.ValueOf(now).Elem(), "") {
		switch {
		case same(l.at, after[i].at):
		case l.safe:
			safe = append(safe, l.key)
		default:
			restart = append(restart, l.key)
		}
	}
	return safe, restart
}

// same compares two values of one field. An empty list is the same as none.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice {
		return slices.EqualFunc(a.Interface().([]string), b.Interface().([]string), func(x, y string) bool { return x == y })
	}
	return a.Equal(b)
}
