// Package swap decides which models are loaded: what is loaded next, and what leaves for it.
//
// It is a policy as a plain data structure: it opens no file, holds no clock and starts nothing. What it decides are
// effects, which actors.Swapper carries out and reports back. A model that a request uses never leaves; of the
// others those leave first that were used longest ago. If these are not enough, models that have had their time take no
// more requests, and leave when the last one ends (decide.go).
package swap
