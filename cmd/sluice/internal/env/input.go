package env

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/system"
)

// inputWait is how long a command that has a prompt waits for a text on standard input.
const inputWait = 200 * time.Millisecond

// hasText says whether a stream is a regular file, or a pipe that has data or ends within inputWait. The parent process
// may have left a pipe open without ever writing to it.
func hasText(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return err == nil && info.Mode().IsRegular()
	}
	return system.Readable(f, inputWait)
}

// Question joins the parts of a question: words, files, and standard input. Standard input is read if words or files
// name it (-), if there is nothing else, or if a text is waiting there.
func (e *Env) Question(words, files []string) (string, error) {
	var parts, said []string
	named := false
	for _, word := range words {
		if word == "-" {
			named = true
		} else {
			said = append(said, word)
		}
	}
	if len(said) > 0 {
		parts = append(parts, strings.Join(said, " "))
	}
	for _, name := range files {
		if name == "-" {
			named = true
			continue
		}
		text, err := e.ReadFile(name, MostText)
		if err != nil {
			return "", err
		}
		parts = append(parts, string(text))
	}
	if named || len(parts) == 0 || e.HasText(e.Stdin) {
		text, err := e.ReadInput(MostText)
		if err != nil {
			return "", err
		}
		if len(text) > 0 {
			parts = append(parts, string(text))
		}
	}
	for i := range len(parts) - 1 { // an empty line between them
		parts[i] = strings.TrimRight(parts[i], "\n") + "\n\n"
	}
	return strings.Join(parts, ""), nil
}

// JoinNegative ties numbers below zero to the flags before them: "-n -1" is meant as "-n=-1".
func JoinNegative(args []string) (joined []string) {
	for i, arg := range args {
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		_, err := strconv.ParseFloat(arg, 64)
		before := ""
		if len(joined) > 0 {
			before = joined[len(joined)-1]
		}
		flag := strings.HasPrefix(before, "-") && len(before) > 1 && !strings.Contains(before, "=")
		_, number := strconv.ParseFloat(before, 64)
		if err == nil && arg[0] == '-' && flag && number != nil {
			if strings.HasPrefix(before, "--") {
				arg = "=" + arg
			}
			joined[len(joined)-1] += arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}
