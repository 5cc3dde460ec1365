// Package tokentrace is the file format of token traces: requests, the steps that were formed, the experts that were
// chosen and the tokens that were drawn. docs/traces.md describes it byte by byte.
//
// A trace is written as it happens and can be read up to where it was cut off. It has no clock and no meaning: its
// writer decides what time is, its reader what to compare.
package tokentrace
