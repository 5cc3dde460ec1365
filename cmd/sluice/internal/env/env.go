package env

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

// Size of a terminal that does not report one: a serial line, or a terminal of some containers.
const (
	UsualColumns = 80
	UsualRows    = 24
)

// Env is the program's access to the world around it.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Lookup         func(name string) (value string, ok bool) // of environment variables
	Root           fs.FS                                     // the machine's, for /proc and /sys
	Now            func() time.Time

	// Interruptible derives a context that Ctrl-C (SIGINT), SIGTERM and SIGHUP cancel. A command that has something to
	// finish takes one; without it, Ctrl-C ends the process at once.
	Interruptible func(context.Context) (context.Context, context.CancelFunc)

	// Serving derives a context that Ctrl-C and SIGTERM cancel, for a command that runs until then. hangUps says when
	// SIGHUP comes; nil: never, it is ignored.
	Serving func(context.Context) (ctx context.Context, hangUps <-chan os.Signal, cancel context.CancelFunc)

	// Terminable derives a context that SIGTERM and SIGHUP alone cancel, for where Ctrl-C has another meaning.
	Terminable func(context.Context) (context.Context, context.CancelFunc)

	// IsTerminal says whether stdin, stdout or stderr is a person's terminal.
	IsTerminal func(stream any) bool

	// HasText says whether a text is waiting on standard input, for a command that has a prompt already.
	HasText func(stdin io.Reader) bool

	// Columns is how wide the terminal behind a stream is.
	Columns func(stream any) int

	// Rows is how many lines the terminal behind a stream has.
	Rows func(stream any) int
}

// serving is Env.Serving of the running process.
func serving(parent context.Context) (context.Context, <-chan os.Signal, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, nil, cancel
	}
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	return ctx, hangUps, func() {
		signal.Stop(hangUps)
		cancel()
	}
}

// ends are the signals that ask the process to end, besides others. SIGHUP is one unless it is ignored, as under nohup.
func ends(others ...os.Signal) []os.Signal {
	all := append(others, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// Process is the env of the running process.
func Process() *Env {
	return &Env{
		Args:   os.Args[1:],
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Lookup: os.LookupEnv,
		Root:   os.DirFS("/"),
		Now:    time.Now,
		Interruptible: func(parent context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(parent, ends(os.Interrupt)...)
		},
		Serving: serving,
		Terminable: func(parent context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(parent, ends()...)
		},
		IsTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		HasText: hasText,
		Columns: func(stream any) int {
			if f, ok := stream.(*os.File); ok {
				if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
					return width
				}
			}
			return UsualColumns
		},
		Rows: func(stream any) int {
			if f, ok := stream.(*os.File); ok {
				if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
					return height
				}
			}
			return UsualRows
		},
	}
}

// UsageError is a fault of the command line that the command finds, and not the parser.
type UsageError struct{ text string }

func (u *UsageError) Error() string { return u.text }

// Usagef is a UsageError.
func Usagef(format string, a ...any) error { return &UsageError{fmt.Sprintf(format, a...)} }

const (
	MaxTokens  = math.MaxInt32 // of a conversation, or of anything within it
	MaxThreads = 1024          // what package cpu takes
)

// Within refuses a number that is out of range for a flag.
func Within(flag string, n, least, most int) error {
	if n < least || n > most {
		return Usagef("%s is %d: want %d to %d", flag, n, least, most)
	}
	return nil
}

// KeyVariable names the environment variable that holds a key.
const KeyVariable = "SLUICE_API_KEY"
