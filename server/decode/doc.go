// Package decode decodes the fields that requests of several dialects share: model, conversation, texts and tokens,
// sampling (in llama.cpp's names), and the form of the answer.
//
// Fields are wire.Fields that find the model of a request by its name, with what the model bounds. Not here: fields of
// one dialect alone, and what is done with a request (server/answer).
package decode
