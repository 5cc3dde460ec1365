package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
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

// usageError is a fault of the command line that only the command itself can see.
type usageError struct{ text string }

func (u *usageError) Error() string { return u.text }

func usagef(format string, a ...any) error { return &usageError{fmt.Sprintf(format, a...)} }

const (
	maxTokens  = math.MaxInt32 // of a conversation, or of anything within it
	maxThreads = 1024          // what package cpu takes
)

// within refuses a number that a flag cannot mean.
func within(flag string, n, least, most int) error {
	if n < least || n > most {
		return usagef("%s is %d: want %d to %d", flag, n, least, most)
	}
	return nil
}

// keyVariable names the environment variable that holds a key.
const keyVariable = "SLUICE_API_KEY"
