// Package stall accounts for a device's time from its spans: computing, or idle for a cause, to the nanosecond; by
// layer, by kind of step, and for the steps that were held up most. It is pure: no clock, no goroutine, no I/O.
// Causes come with the spans: they are assigned where a device waits, in actors. What spans are is internal/trace's
// business, how an account is shown its readers'.
package stall
