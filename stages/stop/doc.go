// Package stop finds stop strings in text that arrives in pieces, so that none of them is ever emitted, not even
// its beginning. Stop tokens are not its business: the caller compares ids.
package stop
