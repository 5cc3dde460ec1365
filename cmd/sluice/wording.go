package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// wordings translate kong's messages about values to the program's own style: what was given, and what is wanted.
var wordings = []struct {
	was *regexp.Regexp
	is  string
}{
	{regexp.MustCompile(`expected a valid \d+ bit int but got (".*")$`), "$1 is no whole number"},
	{regexp.MustCompile(`expected a valid \d+ bit uint but got (".*")$`), "$1 is no whole number from 0 up"},
	{regexp.MustCompile(`expected a float but got (".*?").*$`), "$1 is no number"},
	{regexp.MustCompile(`expected duration but got (".*?").*$`), "$1 is no time: want one such as 10m or 1h30m"},
	{regexp.MustCompile(`expected \w+ value but got "EOL".*$`), "its value is missing"},
	{regexp.MustCompile(`expected \w+ value but got (".*?") \(.*?\); perhaps try (.*)\?$`), "$1 reads as a flag: write $2"},
}

var (
	oneOf     = regexp.MustCompile(`^(.*) must be one of (.*) but got (".*")$`)
	lacking   = regexp.MustCompile(`^(?:expected|missing flags:) "?([^"]*)"?$`)
	noCommand = regexp.MustCompile(`^unexpected argument ([^\s,]+)`)

	unknown = regexp.MustCompile(`^unknown flag (--?[\w-]+)`)
)

// elsewhere maps flags and commands of other programs to those of this one.
var (
	elsewhere = map[string]string{
		"--port": "--addr HOST:PORT", "--host": "--addr HOST:PORT", "-p": "--addr HOST:PORT", "-c": "--ctx", "--ctx-size": "--ctx",
		"--ngl": "--gpu-layers", "--n-gpu-layers": "--gpu-layers", "--verbose": "--log debug", "-v": "--log debug",
		"--api_key": "--api-key", "--temperature": "--temp", "--max-tokens": "-n", "--n-predict": "-n",
		"--cache-type-k": "--kv-k", "--cache-type-v": "--kv-v", "--kv-cache-dtype": "--kv",
	}
	commandsElsewhere = map[string]string{
		"ps": "top", "start": "serve", "search": "pull", "delete": "rm", "remove": "rm",
		"info": "show", "models": "list", "generate": "run", "cli": "run", "server": "serve", "ask": "run",
	}
)

// shortest is the least length of a flag that hardly begins another word by accident.
const shortest = 3

// worded is an error of kong in our words.
func worded(err *kong.ParseError) string {
	text := inOurWords(err.Error())
	if m := oneOf.FindStringSubmatch(text); m != nil {
		allowed := strings.Trim(strings.ReplaceAll(m[2], `"`, ""), ",")
		return m[1] + " is " + m[3] + ": want " + alternatives(strings.Split(allowed, ","))
	}
	var node *kong.Node
	if err.Context != nil {
		node = err.Context.Selected()
	}
	if node == nil {
		if m := noCommand.FindStringSubmatch(text); m != nil && commandsElsewhere[m[1]] != "" {
			return m[1] + " is no command: here it is sluice " + commandsElsewhere[m[1]]
		}
		return noCommand.ReplaceAllString(text, "$1 is no command")
	}
	if m := noCommand.FindStringSubmatch(text); m != nil && flagged(node, "model") {
		return text + ": a model is named by -m " + m[1]
	}
	if m := lacking.FindStringSubmatch(text); m != nil {
		if e, ok := node.Target.Addr().Interface().(exampler); ok {
			return "want " + m[1] + ", as in: " + e.Examples()[0]
		}
	}
	if m := unknown.FindStringSubmatch(text); m != nil {
		if here := elsewhere[m[1]]; here != "" {
			return "unknown flag " + m[1] + ": here it is " + here
		}
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				if len(f.Name) >= shortest && text == "unknown flag "+m[1] && strings.HasPrefix(strings.TrimLeft(m[1], "-"), f.Name) {
					return text + `, did you mean "--` + f.Name + `"?`
				}
			}
		}
	}
	return text
}

// flagged says whether a command has a flag.
func flagged(node *kong.Node, name string) bool {
	for _, f := range node.Flags {
		if f.Name == name {
			return true
		}
	}
	return false
}

// inOurWords translates kong's message about a value.
func inOurWords(text string) string {
	for _, w := range wordings {
		text = w.was.ReplaceAllString(text, w.is)
	}
	return text
}

// alternatives spells a list of which one is wanted.
func alternatives(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// said is the text of an error for a person.
func said(err error) string {
	if parse := (*kong.ParseError)(nil); errors.As(err, &parse) {
		return env.Visible(worded(parse))
	}
	return env.Visible(err.Error())
}
