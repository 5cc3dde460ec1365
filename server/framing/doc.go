// Package framing checks how requests are framed on a connection, byte by byte and before anything else reads them:
// where a request ends must be beyond doubt, or two readers (a proxy and we) could see two different requests.
//
// It is stricter than fasthttp, which takes both lengths at once, spaces in chunk sizes, folded lines and versions that
// do not exist. The rules are those of RFC 9112. Not here: what a request means, and its limits.
package framing
