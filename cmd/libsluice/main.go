// Command libsluice is package sluice as a library for C, and for all languages that call C:
//
//	go build -buildmode=c-shared -o libsluice.so ./cmd/libsluice
//
// sluice.h says what it has; example/ask.c uses it. Options and requests come as JSON, which keeps the interface of C
// the same while they get more fields: parse.go reads them. Only exports.go needs cgo.
package main

func main() {}
