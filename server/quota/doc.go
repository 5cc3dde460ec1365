// Package quota divides a number of units (bytes, places) among clients, so that none of them takes all: the client
// with the fewest is served first. Shares bind only while others wait: a lone client may have everything.
//
// Not here: who a client is, and what the units are.
package quota
