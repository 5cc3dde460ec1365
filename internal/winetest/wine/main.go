// Wine runs a program for Windows by Wine: go test -exec. Its prefix is below the user's cache folder, or SLUICE_WINE.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/winetest"
)

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit status of the program, or 2.
func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: wine PROGRAM [ARGUMENT…]")
		return 2
	}
	err := wine(args[0], args[1:])
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return failed.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func wine(program string, args []string) error {
	folder := os.Getenv("SLUICE_WINE")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		folder = filepath.Join(cache, "sluice-wine")
	}
	p, err := winetest.Open(folder)
	if err != nil {
		return err
	}
	c := p.Command(program, args...)
	var out bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, &out, os.Stderr
	err = c.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == 1 &&
		winetest.FailedToCleanUpAlone(out.String()) {
		fmt.Println("PASS, but for folders that this Wine could not remove")
		return nil
	}
	_, writeErr := os.Stdout.Write(out.Bytes())
	return errors.Join(err, writeErr)
}
