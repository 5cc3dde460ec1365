// Package devices opens what models are computed on by the names that people give it: the processor, one card, several,
// or the best one that is there. Whether a name fits what else was asked for is the caller's to say.
package devices
