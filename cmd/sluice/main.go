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
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// Exit codes. They are part of the interface.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// Size of a terminal that does not say: a serial line's, some containers'.
const (
	usualColumns = 80
	usualRows    = 24
)

// env is what the program sees of the world around it.
type env struct {
	args           []string // without the program's name
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(name string) (value string, ok bool) // of environment variables
	root           fs.FS                                     // the machine's, for /proc and /sys
	now            func() time.Time

	// interruptible derives a context that Ctrl-C (SIGINT) and SIGTERM cancel. A command that has something to
	// finish takes one; without it, Ctrl-C ends the process at once.
	interruptible func(context.Context) (context.Context, context.CancelFunc)

	// terminable derives a context that SIGTERM alone cancels, for where Ctrl-C has another meaning.
	terminable func(context.Context) (context.Context, context.CancelFunc)

	// isTerminal says whether stdin, stdout or stderr is a person's terminal.
	isTerminal func(stream any) bool

	// hasText says whether somebody has put a text on standard input for a command that has a prompt already.
	hasText func(stdin io.Reader) bool

	// columns is how wide the terminal behind a stream is.
	columns func(stream any) int

	// rows is how many lines it has.
	rows func(stream any) int
}

func main() { os.Exit(run(process())) }

// process is the env of the running process.
func process() *env {
	return &env{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		lookup: os.LookupEnv,
		root:   os.DirFS("/"),
		now:    time.Now,
		interruptible: func(parent context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
		},
		terminable: func(parent context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(parent, syscall.SIGTERM)
		},
		isTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		hasText: hasText,
		columns: func(stream any) int {
			if f, ok := stream.(*os.File); ok {
				if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
					return width
				}
			}
			return usualColumns
		},
		rows: func(stream any) int {
			if f, ok := stream.(*os.File); ok {
				if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
					return height
				}
			}
			return usualRows
		},
	}
}

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
	return e.report(err)
}

// report prints an error, once, and turns it into an exit code.
func (e *env) report(err error) int {
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

// visible spells out control characters, which a terminal would obey: errors name what stands in files of strangers.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// commandPath is the command that was meant, as far as it was understood.
func commandPath(c *kong.Context) string {
	if c == nil || c.Selected() == nil {
		return "sluice"
	}
	return c.Selected().FullPath()
}

// usageError is a fault of the command line that only the command itself can see.
type usageError struct{ text string }

func (u *usageError) Error() string { return u.text }

func usagef(format string, a ...any) error { return &usageError{fmt.Sprintf(format, a...)} }

// version is that of the module, which the Go tool knows where it was asked for by version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// built is the commit that this program was built from, else its version; empty if neither is known.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return builtFrom(info)
}

func builtFrom(info *debug.BuildInfo) string {
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if commit != "" {
		return commit + changed
	}
	return strings.TrimPrefix(info.Main.Version, "(devel)") // which says nothing
}
