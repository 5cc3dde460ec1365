// Package decodetest checks dialects with random conversations: a dialect's request for a conversation must come to
// the same prompt as the conversation itself.
package decodetest
