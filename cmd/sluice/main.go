// Command sluice runs large language models on this machine.
//
// cli.go lists the commands; each is a file in the package of its family, below internal: a kong struct with its flags,
// and Run, which parses, calls one thing and prints. From the ground up: env (the world around the program), models
// (what -m names), compute (how a model is run), then library (the store's commands), ask, text, weights, measure,
// watch and serve. Here is what belongs to no command: settings, help, errors. What a command touches of the outside
// world it gets from env, so that the tests here run the whole program in process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// Exit codes. They are part of the interface.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

func main() { os.Exit(run(env.Process())) }

// run is the whole program. It returns the exit code.
func run(e *env.Env) int {
	ended := false // by --help or --version, after which kong goes on parsing
	parser, err := newParser(e, func(int) { ended = true })
	if err != nil {
		panic(err) // the structs below are wrong
	}
	if len(e.Args) == 0 {
		parser.Stdout = e.Stderr
		_, _ = parser.Parse([]string{"--help"})
		return exitUsage
	}
	call, err := parser.Parse(env.JoinNegative(asked(e.Args)))
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

// asked rewrites `help COMMAND`, `version` and `ls`, which many programs have, to their equivalents here. A flag that
// would be read as -n with a value is made an unknown one.
func asked(args []string) []string {
	if i := slices.Index(args, "-ngl"); i >= 0 && !slices.Contains(args[:i], "--") {
		args = slices.Clone(args)
		args[i] = "--ngl"
	}
	switch {
	case args[0] == "version" && len(args) == 1:
		return []string{"--version"}
	case args[0] == "ls":
		return append([]string{"list"}, args[1:]...)
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// exitCode prints an error, once, and returns the exit code for it.
func exitCode(e *env.Env, err error) int {
	var parse *kong.ParseError
	var usage *env.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.Stderr, "sluice: stopped")
		return exitInterrupted
	}
	fmt.Fprintf(e.Stderr, "sluice: %s\n", said(err))
	switch {
	case errors.As(err, &parse):
		fmt.Fprintf(e.Stderr, "See %s --help.\n", commandPath(parse.Context))
		return exitUsage
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// commandPath is the command that was called, as far as it was parsed.
func commandPath(c *kong.Context) string {
	if c == nil || c.Selected() == nil {
		return "sluice"
	}
	return c.Selected().FullPath()
}
