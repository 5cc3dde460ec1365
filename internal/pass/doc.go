// Package pass has what the members of a cluster prove by that they belong to it: a private authority vouches for each
// member's certificate, and a member's pass is a file with that certificate, its private key and the authority's
// certificate. Connections between members are TLS 1.3 on which both sides show theirs.
//
// An authority's certificate is for one cluster alone, and whoever has a pass is a member: it is readable by its owner
// only, and goes to its machine by a way that is trusted.
package pass
