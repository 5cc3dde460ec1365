package answer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/tools"
)

// MaxTools bounds the number of tools of a request.
const MaxTools = 512

// Tools is the engine's choice of tools for an answer.
type Tools = tools.Choice

// Tool is a function that the model may call.
type Tool = tools.Tool

// ToolChoice says whether an answer may, must or must not be a call.
type ToolChoice uint8

// Values of ToolChoice.
const (
	AutoTool ToolChoice = iota // the model decides
	NoTool                     // the answer is no call
	SomeTool                   // the answer is a call of any tool
	OneTool                    // the answer is a call of Toolbox.Name
)

// Toolbox collects what a request says about tools, in any dialect.
type Toolbox struct {
	Choice ToolChoice
	Name   string // tool to call, if Choice is OneTool
	Single bool   // no more than one call

	Allowed []string // nil: all. The others are as if they had not been sent: the model is not told of them

	tools []Tool
}

// Add adds a tool. name and schema are the fields that the tool's name and schema came from, for faults.
func (b *Toolbox) Add(t Tool, name, schema string) *wire.Fault {
	const mostName = 256
	switch {
	case len(b.tools) == MaxTools:
		return wire.Invalid(name, "invalid_value", "there are more than %d tools: want fewer", MaxTools)
	case t.Name == "":
		return wire.Invalid(name, "invalid_value", "%s: want a text", name)
	case len(t.Name) > mostName || strings.ContainsFunc(t.Name, unnamable):
		return wire.Invalid(name, "invalid_value", "%s is %q: want at most %d characters, and no blanks, brackets or quotes",
			name, wire.Shown(t.Name), mostName)
	case b.has(t.Name):
		return wire.Invalid(name, "invalid_value", "%s is %q, as another tool's is: want a name of its own", name, wire.Shown(t.Name))
	case len(t.Parameters) > MaxForm:
		return wire.Invalid(schema, "invalid_value", "%s has %d bytes: want at most %d", schema, len(t.Parameters), MaxForm)
	case t.Parameters != "" && !strings.HasPrefix(t.Parameters, "{"):
		return wire.Invalid(schema, "invalid_value", `%s is %s: want a JSON Schema such as {"type": "object"}`, schema,
			wire.Shown(t.Parameters))
	}
	b.tools = append(b.tools, t)
	return nil
}

// unnamable reports whether a character may not stand in a tool's name: models' syntax may end a name there.
func unnamable(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || strings.ContainsRune("<>{}()[]\"'=,|\\", r)
}

// Allows reports whether the model is told of a tool, if it is told of any.
func (b *Toolbox) Allows(name string) bool {
	return b.Allowed == nil || slices.Contains(b.Allowed, name)
}

// Shown reports whether the model is told of the tools.
func (b *Toolbox) Shown() bool { return len(b.tools) > 0 && b.Choice != NoTool }

// Tools returns the engine's choice of tools; nil if nothing can be called. Faults name the field choice.
func (b *Toolbox) Tools(choice string) (*Tools, *wire.Fault) {
	forced := b.Choice == SomeTool || b.Choice == OneTool
	for _, name := range b.Allowed {
		if !b.has(name) {
			return nil, wire.Invalid(choice, "invalid_value", "%s allows %q, which is not one of the tools", choice, wire.Shown(name))
		}
	}
	switch {
	case forced && len(b.tools) == 0:
		return nil, wire.Invalid(choice, "invalid_value", "%s wants a call, but there are no tools: send some", choice)
	case b.Choice == OneTool && !b.has(b.Name):
		return nil, wire.Invalid(choice, "invalid_value", "%s wants a call of %q, which is not one of the tools", choice, wire.Shown(b.Name))
	case !b.Shown():
		return nil, nil
	}
	list := slices.DeleteFunc(slices.Clone(b.tools), func(t Tool) bool { return !b.Allows(t.Name) })
	t := &Tools{List: list, Must: forced, Single: b.Single}
	if b.Choice == OneTool {
		t.Only = b.Name
	}
	return t, nil
}

func (b *Toolbox) has(name string) bool {
	for i := range b.tools {
		if b.tools[i].Name == name {
			return true
		}
	}
	return false
}
