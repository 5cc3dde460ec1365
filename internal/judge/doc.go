// Package judge makes small programs with random weights, runs them on a device, and compares what it computes with the
// oracle's results: ops one by one, products by each type of matrix, attention over each type of cache.
//
// Devices' tests have their cases from here (internal/backendtest), and so has the test that a user has the program
// make of a machine (sluice doctor --selftest), which compares fewer of them and has no package testing.
package judge
