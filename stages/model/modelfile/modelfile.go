package modelfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/nearest"
)

// Modelfile is the content of a Modelfile.
type Modelfile struct {
	From     string   // a name, or a path
	Adapters []string // paths of what changes it (LoRA)
	Manner
}

// most is the largest size of a Modelfile, in bytes.
const most = 4 << 20

// instructions are those that change something.
var instructions = [...]string{"FROM", "ADAPTER", "PARAMETER", "TEMPLATE", "SYSTEM", "MESSAGE", "LICENSE"}

// ofOllama are instructions that say how Ollama itself is to run a model: which version of it, and which of its own
// parsers and writers of prompts. They are read and change nothing.
var ofOllama = [...]string{"REQUIRES", "PARSER", "RENDERER"}

// Parse reads a Modelfile. Its errors name the line.
func Parse(text string) (*Modelfile, error) {
	if len(text) > most {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(text), most)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	m := &Modelfile{}
	s := scanner{rest: strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")}
	for s.skip() {
		line := s.line
		if err := m.read(&s); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if m.From == "" {
		return nil, fmt.Errorf("there is no FROM: say which model it is made from, such as FROM llama3.2")
	}
	return m, nil
}

// scanner goes through a text.
type scanner struct {
	rest string
	line int // that rest begins in, less one
}

// skip goes to the next instruction, if there is one.
func (s *scanner) skip() bool {
	for s.rest != "" {
		line, rest, _ := strings.Cut(s.rest, "\n")
		bare := strings.TrimSpace(line)
		if bare != "" && bare[0] != '#' {
			s.line++
			s.rest = strings.TrimLeft(s.rest, " \t\v\f\r")
			return true
		}
		s.rest = rest
		s.line++
	}
	return false
}

// word takes what comes up to a blank.
func (s *scanner) word() string {
	at := strings.IndexAny(s.rest, " \t\n")
	if at < 0 {
		at = len(s.rest)
	}
	word := s.rest[:at]
	s.rest = strings.TrimLeft(s.rest[at:], " \t")
	return word
}

// value takes what follows: the rest of the line, or a text between quotes, which may have several lines.
func (s *scanner) value() (string, error) {
	quote := ""
	for _, q := range []string{`"""`, `"`} {
		if strings.HasPrefix(s.rest, q) {
			quote = q
			break
		}
	}
	if quote == "" {
		line, rest, _ := strings.Cut(s.rest, "\n")
		s.rest = rest
		return strings.TrimSpace(line), nil
	}
	inner := s.rest[len(quote):]
	for from := 0; ; {
		at := strings.Index(inner[from:], quote)
		if at < 0 {
			return "", fmt.Errorf("the text that begins with %s has no end: want %s at the end of a line", quote, quote)
		}
		end := from + at
		after, rest, _ := strings.Cut(inner[end+len(quote):], "\n")
		if strings.TrimSpace(after) == "" {
			s.line += strings.Count(inner[:end], "\n")
			s.rest = rest
			return inner[:end], nil
		}
		from = end + 1
	}
}

// read takes one instruction.
func (m *Modelfile) read(s *scanner) error {
	word := s.word()
	name := strings.ToUpper(word)
	if slices.Contains(ofOllama[:], name) {
		_, err := s.value()
		return err
	}
	if !slices.Contains(instructions[:], name) {
		return fmt.Errorf("%.40q is no instruction: %s", word, nearest.Word(name, instructions[:]))
	}
	first := ""
	if name == "PARAMETER" || name == "MESSAGE" {
		first = s.word()
	}
	value, err := s.value()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if value == "" && name != "SYSTEM" && name != "TEMPLATE" {
		return fmt.Errorf("%s has no value", name)
	}
	switch name {
	case "FROM":
		if m.From != "" {
			return fmt.Errorf("FROM is there a second time: a model is made from one other")
		}
		m.From = value
	case "ADAPTER":
		m.Adapters = append(m.Adapters, value)
	case "PARAMETER":
		return m.Parameters.setText(first, value)
	case "TEMPLATE":
		m.Template = value
	case "SYSTEM":
		m.System = value
	case "MESSAGE":
		return m.say(first, value)
	case "LICENSE":
		m.Licenses = append(m.Licenses, value)
	}
	return nil
}

func (m *Modelfile) say(role, content string) error {
	if !slices.Contains(roles(), role) {
		return fmt.Errorf("MESSAGE has the role %.40q: want one of %s", role, strings.Join(roles(), ", "))
	}
	if len(m.Messages) == mostMessages {
		return fmt.Errorf("there are more than %d messages: want fewer", mostMessages)
	}
	m.Messages = append(m.Messages, Message{role, content})
	return nil
}

// String writes a Modelfile that Parse reads as this one, unless a text of it holds three quotes.
func (m *Modelfile) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "FROM %s\n", m.From)
	for _, path := range m.Adapters {
		fmt.Fprintf(&b, "ADAPTER %s\n", path)
	}
	for _, text := range []struct{ name, value string }{{"TEMPLATE", m.Template}, {"SYSTEM", m.System}} {
		if text.value != "" {
			fmt.Fprintf(&b, "%s %s\n", text.name, quoted(text.value))
		}
	}
	for _, line := range m.Parameters.lines() {
		fmt.Fprintf(&b, "PARAMETER %s\n", line)
	}
	for _, one := range m.Messages {
		fmt.Fprintf(&b, "MESSAGE %s %s\n", one.Role, quoted(one.Content))
	}
	for _, text := range m.Licenses {
		fmt.Fprintf(&b, "LICENSE %s\n", quoted(text))
	}
	return b.String()
}

// quoted is a text between quotes that it does not hold, if there are such.
func quoted(text string) string {
	if strings.ContainsAny(text, "\"\n") {
		return `"""` + text + `"""`
	}
	return `"` + text + `"`
}
