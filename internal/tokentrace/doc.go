// Package tokentrace is the file format of token traces: what a model was asked, which steps were formed and what they
// chose and gave. docs/traces.md describes it byte by byte.
//
// A trace is written as it happens and can be read up to where it was cut off. It has no clock and no meaning: who
// records decides what time is, who replays what to compare.
package tokentrace
