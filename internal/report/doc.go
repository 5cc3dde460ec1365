// Package report formats measurements: medians and spreads, shares of ceilings, tables and a picture. It measures
// nothing; cmd/sluice has the clock and the engine.
package report
