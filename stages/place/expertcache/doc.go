// Package expertcache decides which expert of a layer leaves its slot when another one is needed.
//
// The engine asks it, and so does the virtual replay of a trace. It knows no clock: time is how often a layer was
// computed. The same calls give the same answers. Which slot is whose, and what must not leave because a step reads it,
// its caller knows.
package expertcache
