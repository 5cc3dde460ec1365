// Package serve has the command serve: where its models come from, who may ask, its certificates, what clients may do
// to the store. What it answers is package server's.
package serve
