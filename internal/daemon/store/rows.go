package store

import "github.com/forgeyard/forgeyard/internal/authority"

// Do carries out a rule as a part of this transaction.
func (tx *Tx) Do(cmd authority.Command) (authority.Answer, error) {
	return authority.Answer{}, errUnbuilt
}
