// Package jsontext reads JSON from a text in memory, as clients send it. Values are parts of the text where possible,
// counts are bounded during reading, and reading stops when the client has gone.
//
// Code that knows which value comes next reads it from a Reader. JSON that is passed on as it came (schemas of tools,
// fields that a template may read) is a Value; the members of an object keep their order. Not here: what values mean,
// how JSON is written.
package jsontext
