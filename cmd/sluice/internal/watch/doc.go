// Package watch has the commands that ask a running server about its state: top, trace, health, stop.
package watch
