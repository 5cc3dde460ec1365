// Package route chooses the member of a cluster that answers a request: the one where what the request begins with is
// computed already, unless the way there is longer than computing it elsewhere.
//
// Choose is a function of what members say of themselves and of a request. A Table remembers what they said, and what
// was sent to them since, which they cannot have said yet.
package route
