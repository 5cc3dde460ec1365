// Package jsontext reads JSON from a text that is whole in memory, as clients send it: values are parts of the text
// where they can be, counts are bounded while they are read, and the work stops when the client has gone.
//
// Not here: what values mean, and how JSON is written.
package jsontext
