// Package decode reads what the requests of several dialects have in common: the model, the conversation, texts and
// tokens, how tokens are chosen (in llama.cpp's names), and what the answer is bound to be.
//
// Fields are wire.Fields that know models. Not here: members that one dialect alone has, and what is done with a
// request (server/answer).
package decode
