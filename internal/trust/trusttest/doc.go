// Package trusttest makes certificates that are wrong in exactly one way each, and shakes hands with them: whoever refuses
// certificates is tried with all of them.
package trusttest
