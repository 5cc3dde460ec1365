// Package watch has the commands that ask a running server how it is: top, trace, health.
package watch
