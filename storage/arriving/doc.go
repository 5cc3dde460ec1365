// Package arriving keeps files whose bytes come from another machine while they are used: readers wait for the pieces
// that they want, which come before all others, and the rest comes behind them. It does not know from where.
package arriving
