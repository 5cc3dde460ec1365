package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

type man struct{}

func (man) Examples() [2]string {
	return [2]string{`sluice man | man -l -`, `sluice man > ~/.local/share/man/man1/sluice.1`}
}

// Help is what the flags do not say.
func (man) Help() string {
	return "Prints the manual page, all commands with their flags, as man and roff read it."
}

func (man) Run(e *env.Env) error {
	parser, err := newParser(e, func(int) {})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(e.Stdout, manual(parser.Model.Node)); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// manual writes the manual page of the commands that --help is printed from. It has no date: the same program prints
// the same bytes.
func manual(program *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SLUICE 1 \"\" %s\n", roffWord("sluice "+env.Version()))
	fmt.Fprint(&b, ".SH NAME\nsluice \\- run large language models on this machine\n")
	fmt.Fprint(&b, ".SH SYNOPSIS\n.B sluice\n.I command\n[flags]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(about))
	fmt.Fprint(&b, ".SH COMMANDS\n")
	manualOf(&b, program)
	fmt.Fprint(&b, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl\\-C.\n")
	return b.String()
}

// manualOf writes what is below a command.
func manualOf(b *strings.Builder, node *kong.Node) {
	for _, c := range node.Children {
		if c.Type != kong.CommandNode || c.Hidden {
			continue
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roffWord(strings.TrimPrefix(c.FullPath(), "sluice ")), roff(c.Help))
		if c.Detail != "" {
			fmt.Fprintf(b, ".PP\n%s\n", roff(c.Detail))
		}
		for _, p := range c.Positional {
			fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Summary()), roff(p.Help))
		}
		for _, f := range c.Flags {
			if f.Hidden {
				continue
			}
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
		}
		if x, ok := c.Target.Addr().Interface().(exampler); ok {
			for _, line := range x.Examples() {
				fmt.Fprintf(b, ".PP\n.EX\n%s\n.EE\n", roff(line))
			}
		}
		manualOf(b, c)
	}
}

// roff has a text stand as it is: nothing in it is an escape, a hyphen that is searched for, or a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case line[0] == '.' || line[0] == '\'':
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffWord is a text as one argument of a request.
func roffWord(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
