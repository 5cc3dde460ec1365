// Package measure has the commands that measure models and the machine, or say what to expect: bench, perplexity,
// logits, imatrix, plan, replay, doctor.
package measure
