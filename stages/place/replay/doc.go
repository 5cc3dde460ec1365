// Package replay runs a token trace again in virtual time: no weights, no device, no clock, but the very plan and the
// very policy of the engine, on a cost model of disk and memory. It compares policies and budgets.
package replay
