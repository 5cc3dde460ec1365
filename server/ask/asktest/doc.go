// Package asktest makes conversations for the tests of dialects: through one that can express it, a conversation comes
// to the same prompt as by itself.
package asktest
