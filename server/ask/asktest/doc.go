// Package asktest makes conversations for the tests of dialects: one that a dialect can express comes to the same prompt
// through it as by itself.
package asktest
