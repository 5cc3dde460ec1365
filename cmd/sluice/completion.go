package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

func (completion) Examples() [2]string {
	return [2]string{`source <(sluice completion bash)`, `sluice completion fish > ~/.config/fish/completions/sluice.fish`}
}

// Help is what the flags do not say.
func (completion) Help() string {
	return "Prints a script for the shell, to be read when it starts: it completes commands, flags and their values."
}

func (c *completion) Run(e *env.Env) error {
	parser, err := newParser(e, func(int) {})
	if err != nil {
		return err
	}
	write := map[string]func(*shellScript){"bash": (*shellScript).bash, "zsh": (*shellScript).zsh, "fish": (*shellScript).fish}
	s := &shellScript{commands: commandWords(parser.Model.Node)}
	write[c.Shell](s)
	if _, err := io.WriteString(e.Stdout, s.text.String()); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// commandWord is what a shell needs to know of a command; the first one is the program itself.
type commandWord struct {
	path  []string // the words of the command line up to it; none: the program
	help  string
	below []commandWord
	flags []flagWord
}

// flagWord is a flag. values are its possible values; takes says that it has a value, files that the value is the name
// of a file or folder.
type flagWord struct {
	name, short  string
	help         string
	values       []string
	takes, files bool
}

// commandWords reads the commands and flags that --help is printed from.
func commandWords(node *kong.Node) (c commandWord) {
	c.help = node.Help
	if node.Type == kong.CommandNode {
		c.path = strings.Fields(node.FullPath())[1:]
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			c.flags = append(c.flags, flagWordOf(f))
		}
	}
	slices.SortFunc(c.flags, func(a, b flagWord) int { return strings.Compare(a.name, b.name) })
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			c.below = append(c.below, commandWords(child))
		}
	}
	return c
}

func flagWordOf(f *kong.Flag) flagWord {
	w := flagWord{name: f.Name, help: firstSentence(f.Help), takes: !f.IsBool()}
	if f.Short != 0 {
		w.short = string(f.Short)
	}
	for _, v := range f.EnumSlice() {
		if v != "" {
			w.values = append(w.values, v)
		}
	}
	if v, ok := f.Target.Addr().Interface().(interface{ Values() []string }); ok {
		w.values = v.Values()
	}
	w.files = strings.Contains(f.PlaceHolder, "FILE") || strings.Contains(f.PlaceHolder, "FOLDER") || f.PlaceHolder == "DIR"
	return w
}

// firstSentence is what fits beside a completion.
func firstSentence(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	first, _, _ = strings.Cut(first, ": ")
	return strings.TrimSuffix(first, ".")
}

// all lists a command and those below it.
func (c *commandWord) all() (list []*commandWord) {
	list = append(list, c)
	for i := range c.below {
		list = append(list, c.below[i].all()...)
	}
	return list
}

// words are what may follow the command: commands, else flags.
func (c *commandWord) words() (commands, flags []string) {
	for _, b := range c.below {
		commands = append(commands, b.path[len(b.path)-1])
	}
	for _, f := range c.flags {
		flags = append(flags, "--"+f.name)
		if f.short != "" {
			flags = append(flags, "-"+f.short)
		}
	}
	return commands, flags
}

// shellScript is a script that is being written.
type shellScript struct {
	commands commandWord
	text     strings.Builder
}

func (s *shellScript) line(format string, args ...any) {
	fmt.Fprintf(&s.text, format, args...)
	s.text.WriteByte('\n')
}

// single puts a text between single quotes, for any of the shells.
func single(text string) string {
	return "'" + strings.NewReplacer("\\", "", "'", "").Replace(text) + "'" // none of ours needs either
}

// bash writes a script for bash: the words so far give the command, which together with the word before gives the
// offers.
func (s *shellScript) bash() {
	s.line("# bash completion of sluice")
	s.line("_sluice() {")
	s.line(`  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" at="" word`)
	s.line(`  COMPREPLY=()`)
	s.line(`  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`)
	s.line(`    case "$at $word" in`)
	for _, c := range s.commands.all()[1:] {
		before := strings.Join(c.path[:len(c.path)-1], "-")
		s.line(`      %s) at=%s ;;`, single(before+" "+c.path[len(c.path)-1]), strings.Join(c.path, "-"))
	}
	s.line(`    esac`)
	s.line(`  done`)
	s.line(`  case "$at $before" in`)
	for _, c := range s.commands.all() {
		for _, f := range c.flags {
			if !f.takes {
				continue
			}
			at := strings.Join(c.path, "-")
			patterns := single(at + " --" + f.name)
			if f.short != "" {
				patterns += "|" + single(at+" -"+f.short)
			}
			switch {
			case len(f.values) > 0:
				s.line(`    %s) COMPREPLY=($(compgen -W %s -- "$current")); return ;;`, patterns, single(strings.Join(f.values, " ")))
			case f.files:
				s.line(`    %s) compopt -o default 2>/dev/null; return ;;`, patterns)
			default:
				s.line(`    %s) return ;;`, patterns)
			}
		}
	}
	s.line(`  esac`)
	s.line(`  case "$at" in`)
	for _, c := range s.commands.all() {
		commands, flags := c.words()
		s.line(`    %s)`, single(strings.Join(c.path, "-")))
		s.line(`      if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W %s -- "$current")); return; fi`,
			single(strings.Join(flags, " ")))
		if len(commands) > 0 {
			s.line(`      COMPREPLY=($(compgen -W %s -- "$current")) ;;`, single(strings.Join(commands, " ")))
		} else {
			s.line(`      compopt -o default 2>/dev/null ;;`)
		}
	}
	s.line(`  esac`)
	s.line("}")
	s.line("complete -F _sluice sluice")
}

// zsh writes a script for zsh: each command is a function that describes its arguments to _arguments or _describe.
func (s *shellScript) zsh() {
	s.line("#compdef sluice")
	for _, c := range s.commands.all() {
		s.line("%s() {", zshFunction(c))
		if len(c.below) > 0 {
			s.line("  local -a commands; local line state")
			s.line("  commands=(")
			for _, b := range c.below {
				s.line("    %s", single(b.path[len(b.path)-1]+":"+strings.ReplaceAll(firstSentence(b.help), ":", "")))
			}
			s.line("  )")
		}
		s.line(`  _arguments -C \`)
		for _, f := range c.flags {
			for _, spelling := range f.zsh() {
				s.line(`    %s \`, single(spelling))
			}
		}
		if len(c.below) == 0 {
			s.line("    '*:file:_files'")
			s.line("}")
			continue
		}
		s.line("    '1:command:->command' '*::argument:->arguments'")
		s.line(`  case "$state" in`)
		s.line("    command) _describe command commands ;;")
		s.line(`    arguments) case "$line[1]" in`)
		for _, b := range c.below {
			s.line("      %s) %s ;;", b.path[len(b.path)-1], zshFunction(&b))
		}
		s.line("    esac ;;")
		s.line("  esac")
		s.line("}")
	}
	s.line(`if [ "$funcstack[1]" = "_sluice" ]; then _sluice "$@"; else compdef _sluice sluice; fi`)
}

func zshFunction(c *commandWord) string {
	return strings.Join(append([]string{"_sluice"}, c.path...), "_")
}

// zsh are the flag's spellings, as _arguments takes them.
func (f *flagWord) zsh() (all []string) {
	help := strings.NewReplacer("[", "(", "]", ")", ":", "").Replace(f.help)
	value := ""
	switch {
	case len(f.values) > 0:
		value = ":value:(" + strings.Join(f.values, " ") + ")"
	case f.files:
		value = ":file:_files"
	case f.takes:
		value = ":value:"
	}
	all = []string{"*--" + f.name + "[" + help + "]" + value}
	if f.takes {
		all[0] = "*--" + f.name + "=[" + help + "]" + value
	}
	if f.short != "" {
		all = append(all, "*-"+f.short+"["+help+"]"+value)
	}
	return all
}

// fish writes a script for fish: a line for each command and flag, with the condition under which it is offered.
func (s *shellScript) fish() {
	s.line("# fish completion of sluice")
	s.line("function __sluice_at")
	s.line("  set -l at")
	s.line("  for word in (commandline -opc)[2..]")
	s.line(`    switch "$at $word"`)
	for _, c := range s.commands.all()[1:] {
		before := strings.Join(c.path[:len(c.path)-1], "-")
		s.line("      case %s; set at %s", single(before+" "+c.path[len(c.path)-1]), strings.Join(c.path, "-"))
	}
	s.line("    end")
	s.line("  end")
	s.line(`  test "$at" = "$argv[1]"`)
	s.line("end")
	for _, c := range s.commands.all() {
		when := fmt.Sprintf(`-n "__sluice_at %s"`, single(strings.Join(c.path, "-")))
		for _, b := range c.below {
			s.line("complete -c sluice -f %s -a %s -d %s", when, b.path[len(b.path)-1], single(firstSentence(b.help)))
		}
		for _, f := range c.flags {
			spelling := "-l " + f.name
			if f.short != "" {
				spelling += " -s " + f.short
			}
			switch {
			case len(f.values) > 0:
				spelling += " -x -a " + single(strings.Join(f.values, " "))
			case f.files:
				spelling += " -r"
			case f.takes:
				spelling += " -x"
			}
			s.line("complete -c sluice %s %s -d %s", when, spelling, single(f.help))
		}
	}
}
