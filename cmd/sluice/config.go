package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

type config struct {
	JSON bool     `name:"json" help:"Print JSON."`
	Call []string `arg:"" optional:"" passthrough:"" placeholder:"COMMAND" help:"Command, perhaps with flags. Default: serve."`
}

func (config) Examples() [2]string {
	return [2]string{`sluice config`, `sluice config serve --ram 8G`}
}

// Help is what the flags do not say.
func (config) Help() string {
	return "Flags count first; then the environment, where --keep-alive is SLUICE_KEEP_ALIVE; then the file that " +
		"SLUICE_CONFIG names, else ~/.config/sluice/sluice.toml, else /etc/sluice/sluice.toml. A key of the file is the name of " +
		"a flag, for all commands that have it, or in a table, such as [serve], for that command. Values that are not in force " +
		"are shown behind the one that is."
}

// setting is one flag of a command.
type setting struct {
	Name  string   `json:"name"`
	Value any      `json:"value"`
	Means string   `json:"means,omitempty"` // what a default says that is 0 or nothing, in the words of --help
	From  string   `json:"from"`            // flag, an environment variable, a file and perhaps its table, or default
	Over  []string `json:"over,omitempty"`  // other sources that it overrides
}

func (c *config) Run(e *env.Env) error {
	words := c.Call
	if len(words) == 0 {
		words = []string{"serve"}
	}
	s := newConfiguration(e)
	parser, err := newParserWith(e, s, func(int) {})
	if err != nil {
		return err
	}
	call, err := s.understood(parser, env.JoinNegative(words))
	if err != nil {
		return err
	}
	all := s.inForce(call)
	if c.JSON {
		return env.PrintJSON(e.Stdout, struct {
			Command  string    `json:"command"`
			File     string    `json:"file,omitempty"`
			Settings []setting `json:"settings"`
		}{strings.TrimPrefix(call.Selected().FullPath(), "sluice "), s.path, all})
	}
	return printSettings(e.Stdout, s.path, all)
}

// understood parses the flags of a command line; other arguments that the command needs may be missing.
func (s *configuration) understood(parser *kong.Kong, words []string) (*kong.Context, error) {
	call, err := kong.Trace(parser, words)
	if err == nil {
		err = call.Error
	}
	if err == nil && call.Selected() == nil {
		err = errors.New("want a command, such as serve")
	}
	for _, step := range []func() error{
		func() error { return call.Reset() },
		func() error { return s.load(call.Model) },
		func() error { return call.Resolve() },
		func() error { _, err := call.Apply(); return err },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return nil, env.Usagef("%s", inOurWords(err.Error()))
	}
	return call, nil
}

// inForce lists, for each flag of the called command, the value in force and where it comes from.
func (s *configuration) inForce(call *kong.Context) (all []setting) {
	node := call.Selected()
	given := map[string]bool{}
	for _, p := range call.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	for _, flag := range node.Flags {
		if flag.Hidden || !slices.Contains(settable(node), flag.Name) {
			continue
		}
		x := setting{Name: flag.Name, Value: shownValue(flag, flag.Target.Interface()), From: "default"}
		rest := s.origins(node, flag)
		switch {
		case given[flag.Name]:
			x.From = "flag"
		case len(rest) > 0:
			x.From, rest = rest[0].from, rest[1:]
		case flag.Target.IsZero():
			x.Means = meaning(flag.Help)
		}
		for _, o := range rest {
			x.Over = append(x.Over, fmt.Sprintf("%s = %v", o.from, shownValue(flag, o.value)))
		}
		all = append(all, x)
	}
	return all
}

// unsaid begins what a flag's help says of its absence.
var unsaid = regexp.MustCompile(`(?:Default|Without it[^:.]*): (.+?)(?:\.(?: |$)|$)`)

// meaning is what a flag's help says of its absence; empty: nothing.
func meaning(help string) string {
	if found := unsaid.FindStringSubmatch(help); found != nil {
		return found[1]
	}
	return ""
}

// userinfo is who asks, in a URL such as a registry's of --join.
var userinfo = regexp.MustCompile(`://.*@`)

// shownValue is a flag's value as it is shown, in JSON and to people. Secrets are not shown: keys, and who asks in
// URLs.
func shownValue(flag *kong.Flag, v any) any {
	if flag.Name == "api-key" {
		if fmt.Sprint(v) == "" || fmt.Sprint(v) == "[]" {
			return ""
		}
		return "(secret)"
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer { // a flag whose absence means something else than 0
		if p.IsNil() {
			return ""
		}
		v = p.Elem().Interface()
	}
	switch v := v.(type) {
	case string:
		return userinfo.ReplaceAllString(v, "://(secret)@")
	case []string:
		v = slices.Clone(v)
		for i, word := range v {
			v[i] = userinfo.ReplaceAllString(word, "://(secret)@")
		}
		return v
	case []any: // of a file
		v = slices.Clone(v)
		for i, word := range v {
			v[i] = shownValue(flag, word)
		}
		return v
	case env.Size:
		if v == 0 {
			return ""
		}
		return env.BinarySize(int64(v))
	case fmt.Stringer: // times, layers
		return v.String()
	}
	return v
}

func printSettings(w io.Writer, path string, all []setting) error {
	if path == "" {
		path = "there is none"
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "file: %s\n", env.Printable(path))
	for _, x := range all {
		value := fmt.Sprint(x.Value)
		if list, ok := x.Value.([]string); ok {
			value = strings.Join(list, ", ")
		}
		if x.Means != "" {
			value = x.Means
		} else if value == "" {
			value = "-"
		}
		from := x.From
		if len(x.Over) > 0 {
			from += ", over " + strings.Join(x.Over, ", ")
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", x.Name, env.Printable(value), env.Printable(from))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}
