// Package anthropic speaks Anthropic's API: messages, their tokens counted, models and errors as its clients know them.
//
// A request becomes an answer.Order, its blocks the messages that chat templates know (conversation.go), and the parts
// of an answer become blocks again (encode.go). Not here: what all dialects do with an order (server/answer).
package anthropic
