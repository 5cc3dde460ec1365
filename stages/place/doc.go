// Package place plans where everything of the models lies, and how much of it there may be: which device computes which
// segment, the home of every group of weights, the size of KV caches and of steps.
//
// devices.go says who computes what, division.go how much the host keeps, tiers.go where groups have their homes,
// cost.go how fast it should be.
//
// A plan is data, made once before anything is loaded, from what the files hold, what was asked for and what the
// machine has. Whoever loads and computes carries it out; whoever shows it prints it. Nothing here reads a clock, a
// file or the machine.
package place
