// Package replay runs a token trace again in virtual time: without weights, device or clock, but with the engine's
// own plan and policies, on a cost model of disk and memory. It compares policies and budgets.
package replay
