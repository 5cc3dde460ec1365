// Package quota divides what there is a number of (bytes, places) among clients, so that none of them takes all: who
// has least is served first. Shares bind only while others wait: alone, one client may have everything.
//
// Not here: who a client is, and what the units are.
package quota
