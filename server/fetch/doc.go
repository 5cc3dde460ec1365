// Package fetch gets pictures from the addresses that requests name, for servers whose operator allows it.
//
// Only public addresses are connected to, which is checked on the address of the connection itself, redirects included.
// No proxy, no cookies, no credentials; size and time are bounded; errors tell nothing of what was found.
package fetch
