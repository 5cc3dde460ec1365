// Package sample chooses the next token from a row of logits, in the order and with the meaning of llama.cpp's
// default chain: logit bias, penalties, DRY, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature, draw;
// mirostat v2 in place of all between DRY and the draw.
//
// A choice depends on the logits, the parameters, the sequence's tokens and its State, and on nothing else:
// random numbers are a function of seed and position, weights are whole numbers (internal/backend/draw.go), and what
// else is computed is rounded alike on every machine. So a sequence that is computed again, or among others, gets the
// same tokens; and settings that remove no token change none.
//
// Where it differs from llama.cpp, on purpose: a temperature of 0 takes the likeliest token also when typical or
// XTC would remove it; penalties and DRY act before mirostat instead of being ignored; banned tokens (−Inf) do
// not count as candidates; ties go to the lower id.
package sample
