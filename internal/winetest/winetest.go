// Package winetest runs programs for Windows on Linux, by Wine: tests of this module, and the program.
package winetest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// names are those of Wine's program for 64 bits; Debian's package wine64 keeps it apart from the path.
var names = []string{"wine64", "wine", "/usr/lib/wine/wine64"}

// Prefix is a folder with a Windows of its own: a drive C: and a registry.
type Prefix struct {
	folder, program string
}

// Open makes a folder a prefix, or takes one that was made before; no other process may make it meanwhile. The error
// is exec.ErrNotFound if Wine is not installed.
func Open(folder string) (*Prefix, error) {
	p := &Prefix{folder: folder}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			p.program = path
			break
		}
	}
	if p.program == "" {
		return nil, fmt.Errorf("wine: %w: install it (Debian: wine64)", exec.ErrNotFound)
	}
	system := filepath.Join(folder, "drive_c", "windows", "system32")
	if _, err := os.Stat(filepath.Join(system, "kernel32.dll")); err != nil {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		if out, err := p.Command("wineboot", "--init").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("wineboot: %w\n%s", err, out)
		}
	}
	// Go's runtime takes its random numbers from a library that Wine has had since 8.13. Its function takes what
	// RtlGenRandom takes, by another name SystemFunction036, and returns the same.
	const library = "bcryptprimitives.dll"
	at := filepath.Join(system, library)
	if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	return p, safefile.Write(at, forwarder(library, "ProcessPrng", "advapi32.SystemFunction036"), 0o600, false)
}

// Command is a program for Windows with its arguments, which runs as os/exec runs programs, in the environment of this
// process.
func (p *Prefix) Command(program string, args ...string) *exec.Cmd {
	c := exec.Command(p.program, append([]string{program}, args...)...)
	c.Env = append(os.Environ(), "WINEPREFIX="+p.folder, "WINEDEBUG="+cmp.Or(os.Getenv("WINEDEBUG"), "-all"))
	return c
}

// FailedToCleanUpAlone reports whether tests, whose output this is, failed for no other reason than that Wine has no
// way to remove a name of a file that is open, which Go's os.RemoveAll asks for: Wine 8 has not, and tests end with it.
func FailedToCleanUpAlone(output string) bool {
	found := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"):
			return false
		case text == line, strings.HasPrefix(text, "--- "):
		case strings.Contains(text, "TempDir RemoveAll cleanup: ") && strings.HasSuffix(text, ": Invalid function."):
			found = true
		default:
			return false
		}
	}
	return found
}

// Path returns the name that a file of Linux has in the prefix, by the drive Z: that Wine gives to /.
func Path(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// Folder returns the folder of Linux in which C:\ lies.
func (p *Prefix) Folder() string { return filepath.Join(p.folder, "drive_c") }

// Close ends what still runs in the prefix.
func (p *Prefix) Close() error {
	return p.Command("wineboot", "--shutdown", "--force").Run()
}
