// Package stop finds stop strings in text that arrives in pieces, and never emits any part of one. It does not handle
// stop tokens: callers compare ids.
package stop
