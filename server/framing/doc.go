// Package framing checks how requests are framed on a connection, byte by byte and before anything else reads them.
// The end of a request must be unambiguous, or two readers (a proxy and this server) could see two different
// requests.
//
// It is stricter than fasthttp, which accepts both lengths at once, spaces in chunk sizes, folded lines and versions
// that do not exist. The rules are those of RFC 9112. Not here: what a request means, and its limits.
package framing
