package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/nearest"
)

// configuration holds values for flags that the command line does not give: from the environment (--keep-alive is
// SLUICE_KEEP_ALIVE), else from a file, sluice.toml. In the file, a key is the name of a flag, for all commands that
// have it; a key in a table with the name of a command is for that command, and takes precedence.
type configuration struct {
	lookup func(name string) (value string, ok bool)
	root   fs.FS

	folder string // of this person's settings; empty: there is none
	path   string // of the file; empty: there is none
	file   map[string]any
}

const (
	configVariable = "SLUICE_CONFIG" // names the file
	configName     = "sluice.toml"
	mostConfig     = 1 << 20 // bytes
)

// load finds and reads the file.
func (s *configuration) load(app *kong.Application) error {
	text, err := s.read()
	if err != nil || s.path == "" {
		return err
	}
	if s.file, err = decodeSettings(text); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if err := checkSettings(s.file, app.Node, nil); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// read finds and reads the file: that of SLUICE_CONFIG, else the user's, else the machine's.
func (s *configuration) read() ([]byte, error) {
	if path := s.variable(configVariable); path != "" {
		s.path = path
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", configVariable, err)
		}
		return text, nil
	}
	if s.folder != "" {
		s.path = filepath.Join(s.folder, "sluice", configName)
		text, err := os.ReadFile(s.path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	s.path = "/etc/sluice/" + configName
	text, err := fs.ReadFile(s.root, s.path[1:])
	if errors.Is(err, fs.ErrNotExist) {
		s.path, err = "", nil
	}
	return text, err
}

// decodeSettings decodes the text of a file.
func decodeSettings(text []byte) (map[string]any, error) {
	if len(text) > mostConfig {
		return nil, fmt.Errorf("it has %d bytes: a file of settings has at most %d", len(text), mostConfig)
	}
	tree := map[string]any{}
	_, err := toml.Decode(string(text), &tree)
	if at := (toml.ParseError{}); errors.As(err, &at) {
		return nil, fmt.Errorf("line %d: %s", at.Position.Line, at.Message)
	}
	return tree, err
}

// checkSettings refuses keys that are no settings, of the program or of the command of a table.
func checkSettings(tree map[string]any, node *kong.Node, tables []string) error {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at := strings.Join(append(slices.Clone(tables), key), ".")
		if table, ok := tree[key].(map[string]any); ok {
			child := commandOf(node, key)
			if child == nil {
				return fmt.Errorf("[%s] is no command: %s", at, nearest.Word(key, commandsOf(node)))
			}
			if err := checkSettings(table, child, append(tables, key)); err != nil {
				return err
			}
			continue
		}
		known := settable(node)
		if len(tables) == 1 && node.Parent != nil {
			known = append(known, of(node.Parent, node.Name)...)
		}
		if !slices.Contains(known, key) {
			if commandOf(node, key) != nil {
				return fmt.Errorf("%s is a command: its settings are in a table, [%s]", at, at)
			}
			return fmt.Errorf("%s is no setting: %s", at, nearest.Word(key, known))
		}
		if err := checkValue(tree[key]); err != nil {
			return fmt.Errorf("%s %w", at, err)
		}
	}
	return nil
}

// checkValue refuses values of types that no flag has.
func checkValue(v any) error {
	switch v := v.(type) {
	case string, bool, int64:
		return nil
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return nil
		}
	case []any:
		for _, x := range v {
			if _, list := x.([]any); list {
				return errors.New("is a list of lists: want a value, or a list of values")
			}
			if err := checkValue(x); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("is %v: want a text, a number, true, false, or a list of them", v)
}

// commandOf is a command by its name, below another one or the program.
func commandOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && child.Name == name {
			return child
		}
	}
	return nil
}

func commandsOf(node *kong.Node) (all []string) {
	for _, child := range node.Children {
		if child.Type == kong.CommandNode {
			all = append(all, child.Name)
		}
	}
	return all
}

// settable lists the names of flags, of a command and all commands below it, that configuration may set.
func settable(node *kong.Node) (all []string) {
	for _, flag := range node.Flags {
		if node.Parent != nil && flag.Name != "force" && flag.Name != "help" && !slices.Contains(all, flag.Name) {
			all = append(all, flag.Name) // the program's own flags are for one call, and so is --force
		}
	}
	for _, child := range node.Children {
		for _, name := range settable(child) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// of lists the names of flags of commands that are also set in a table of another command, as the tag of their field
// says: those by which a server is a member belong to [cluster].
func of(node *kong.Node, table string) (all []string) {
	for _, child := range node.Children {
		for _, flag := range child.Flags {
			if flag.Tag.Get(tableTag) == table {
				all = append(all, flag.Name)
			}
		}
	}
	return all
}

// tableTag is the tag of a flag's field that names another table in which it is set as well.
const tableTag = "table"

// origin is a value and the place where it was set.
type origin struct {
	value any
	from  string
}

// origins lists the values for a flag of a command, the one in force first.
func (s *configuration) origins(node *kong.Node, flag *kong.Flag) (all []origin) {
	if !slices.Contains(settable(node), flag.Name) {
		return nil
	}
	variable := variableOf(flag.Name)
	// These variables mean something else than the flag with the same name.
	elsewhere := []string{configVariable, env.KeyVariable, namedmodel.StoreVariable}
	if text := s.variable(variable); text != "" && !slices.Contains(elsewhere, variable) {
		all = append(all, origin{text, variable})
	}
	tables := []map[string]any{s.file}
	names := []string{""}
	if shared := flag.Tag.Get(tableTag); shared != "" { // the command's own table is closer
		below, _ := s.file[shared].(map[string]any)
		tables, names = append(tables, below), append(names, shared)
	}
	above, within := s.file, ""
	for _, name := range strings.Fields(node.FullPath())[1:] {
		below, _ := above[name].(map[string]any)
		above, within = below, strings.TrimPrefix(within+"."+name, ".")
		tables, names = append(tables, below), append(names, within)
	}
	for i, table := range slices.Backward(tables) {
		v, ok := table[flag.Name]
		if _, command := v.(map[string]any); !ok || command {
			continue
		}
		from := s.path
		if names[i] != "" {
			from += " [" + names[i] + "]"
		}
		all = append(all, origin{v, from})
	}
	return all
}

// variable is the value of an environment variable; an empty one counts as not set.
func (s *configuration) variable(name string) string {
	if v, ok := s.lookup(name); ok {
		return v
	}
	return ""
}

// variableOf is the environment variable of a flag.
func variableOf(flag string) string {
	return "SLUICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Validate implements kong.Resolver; load has checked everything.
func (*configuration) Validate(*kong.Application) error { return nil }

// Resolve gives kong a flag's value, in a form that its decoders take.
func (s *configuration) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	all := s.origins(parent.Node(), flag)
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // kong has it so: there is no value
	}
	value, err := valueFor(flag, all[0].value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", all[0].from, err)
	}
	return value, nil
}

// valueFor converts a setting to a value that the flag's decoder takes.
func valueFor(flag *kong.Flag, v any) (any, error) {
	switch list, several := v.([]any); {
	case flag.IsSlice() && several:
		return list, parses(flag, list)
	case flag.IsSlice():
		text := spelledSetting(v)
		return text, parses(flag, text)
	case several:
		return nil, fmt.Errorf("is a list: want one value")
	}
	if _, truth := v.(bool); !truth {
		v = spelledSetting(v)
	}
	return v, parses(flag, v)
}

// parses tries to parse a value, so that an error can name where it comes from.
func parses(flag *kong.Flag, v any) error {
	target := reflect.New(flag.Target.Type()).Elem()
	if err := flag.Parse(kong.Scan().PushTyped(v, kong.FlagValueToken), target); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), flag.ShortSummary()+": ")) // who asked says it, too
	}
	if allowed := flag.EnumMap(); flag.Enum != "" && !flag.IsSlice() && !allowed[fmt.Sprint(v)] {
		return fmt.Errorf("%q: want one of %s", fmt.Sprint(v), strings.ReplaceAll(strings.Trim(flag.Enum, ","), ",", ", "))
	}
	return nil
}

// spelledSetting is a value as a person would type it.
func spelledSetting(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
