// Package leaf is a leaf.
package leaf
