// Command sluice runs large language models on this machine.
//
// One file holds one command: a kong struct with its flags, and Run, which parses, calls one thing and prints.
// What models, tokens and requests are is for other packages to know. Everything a command touches of the
// outside world it gets from env, so that tests run the whole program in process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

// Exit codes. They are part of the interface.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

func main() { os.Exit(run(process())) }

// run is the whole program. It returns the exit code.
func run(e *env) int {
	ended := false // by --help or --version, after which kong goes on parsing
	parser, err := newParser(e, func(int) { ended = true })
	if err != nil {
		panic(err) // the structs below are wrong
	}
	if len(e.args) == 0 {
		parser.Stdout = e.stderr
		_, _ = parser.Parse([]string{"--help"})
		return exitUsage
	}
	call, err := parser.Parse(joinNegative(e.args))
	if ended {
		return exitDone
	}
	if err == nil {
		err = given(call)
	}
	if err == nil {
		err = call.Run(e)
	}
	return exitCode(e, err)
}

// exitCode prints an error, once, and says what it means to who called.
func exitCode(e *env, err error) int {
	var parse *kong.ParseError
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.stderr, "sluice: stopped")
		return exitInterrupted
	}
	fmt.Fprintf(e.stderr, "sluice: %s\n", said(err))
	switch {
	case errors.As(err, &parse):
		fmt.Fprintf(e.stderr, "See %s --help.\n", commandPath(parse.Context))
		return exitUsage
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// commandPath is the command that was meant, as far as it was understood.
func commandPath(c *kong.Context) string {
	if c == nil || c.Selected() == nil {
		return "sluice"
	}
	return c.Selected().FullPath()
}
