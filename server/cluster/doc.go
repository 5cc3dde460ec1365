// Package cluster keeps a server's view of the members of its cluster: each calls all others three times a second over
// mutual TLS (internal/pass), says what it is and hears what they are, and where further members are. stages/route
// chooses by that whose a request is, and Do passes it on.
//
// Who answers is not agreed on: each member chooses by what it has heard. If two choose differently, a prefix is read
// twice, and no answer is lost.
package cluster
