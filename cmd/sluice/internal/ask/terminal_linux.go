package ask

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// newEditor takes control of the process's terminal; nil if that is not possible.
func newEditor(e *env.Env, screen env.Pane) *editor {
	in, ok := e.Stdin.(*os.File)
	if !ok {
		return nil
	}
	fd := int(in.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	ed := &editor{screen: screen, keys: typedBytes(in), resized: resized, mode: &termios{fd, *before}}
	ed.Complete = completions
	ed.size = func() (int, int) {
		if width, height, err := term.GetSize(fd); err == nil && width > 0 && height > 0 {
			return width, height
		}
		return env.UsualColumns, env.UsualRows
	}
	ed.mode.listening()
	return ed
}

// termios is the mode of a terminal (termios(3)).
type termios struct {
	fd     int
	before unix.Termios
}

func (t *termios) set(mode unix.Termios) {
	_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, &mode) // the terminal may be gone: reading says so
}

// quiet is a mode in which typed keys are not echoed, and each is read at once.
func (t *termios) quiet() unix.Termios {
	mode := t.before
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	mode.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.IXON
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	return mode
}

func (t *termios) typing() {
	mode := t.quiet()
	mode.Lflag &^= unix.ISIG
	t.set(mode)
}

func (t *termios) listening() { t.set(t.quiet()) }

func (t *termios) restore() { t.set(t.before) }

func (t *termios) suspend() {
	t.restore()
	_ = unix.Kill(0, unix.SIGTSTP) // the whole job, as the terminal does it; a session without a shell goes on at once
}
