// Package expertcache decides which expert of a layer leaves its slot when another one is needed.
//
// The engine asks it, and so does the virtual replay of a trace. It knows no clock: its time is how often a layer
// was computed. The same calls give the same answers. Its caller knows which slot holds which expert, and which
// experts must not leave because a step reads them.
package expertcache
