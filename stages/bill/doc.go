// Package bill says what the time of one request went to. A request's time is one line: whoever moves it on says what
// the time since the last move went to, so that the causes sum to the time by construction.
package bill
