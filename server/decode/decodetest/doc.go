// Package decodetest makes conversations for the tests of dialects: through one that can express it, a conversation
// comes to the same prompt as by itself.
package decodetest
