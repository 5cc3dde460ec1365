// Package report turns measurements into what people read: medians and spreads, shares of ceilings, tables and a
// picture. It measures nothing; the clock and the engine are cmd/sluice's.
package report
