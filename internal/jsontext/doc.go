// Package jsontext reads JSON from a text that is whole in memory, as clients send it: values are parts of the text
// where they can be, counts are bounded while they are read, and the work stops when the client has gone.
//
// Code that knows which value comes next reads it from a Reader. What is handed on as it came (schemas of tools, fields
// that a template may know) is a Value; the members of an object keep their order. Not here: what values mean, how JSON
// is written.
package jsontext
