// Package sealedtest makes keys for tests of what is encrypted.
package sealedtest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/sealed"
)

// Key returns the key that is written as one hexadecimal digit again and again.
func Key(t require.TestingT, digit string) *sealed.Key {
	k, err := sealed.Parse(strings.Repeat(digit, 64))
	require.NoError(t, err)
	return k
}
