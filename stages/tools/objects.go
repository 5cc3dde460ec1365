package tools

import (
	"encoding/json"
	"slices"
	"strings"
)

// objects is the syntax of calls that are JSON objects, one after another or in a list: one key holds the name and
// another the arguments, in any order, or the only key is the name.
type objects struct {
	keyIsName bool
	known     bool // only names of tools that the request has: nothing else marks these calls

	nameKey, argsKey string // beside the usual ones
}

func (o *objects) isName(key string) bool {
	return slices.Contains(nameKeys[:], key) || key == o.nameKey && key != ""
}

func (o *objects) isArguments(key string) bool {
	return slices.Contains(argumentKeys[:], key) || key == o.argsKey && key != ""
}

func (o *objects) begin(p *Parser) (call, verdict) {
	if p.held[0] != '{' {
		return nil, no
	}
	return &object{form: o}, yes
}

func (*objects) texts() []string { return nil }

// object is a call that is being read.
type object struct {
	form     *objects
	at       int // what comes next
	depth    int // objects that are open
	key      string
	value    value
	text     []byte // of the value or key, as JSON
	told     int    // bytes of text that were reported as arguments
	name, id string
	begun    bool
	args     []byte // complete, before the name is known
	hasArgs  bool
}

// What comes next in an object.
const (
	atStart = iota
	atKey
	atColon
	atValue
	inValue
)

func (o *object) step(p *Parser) verdict {
	for {
		inKey := o.at == atKey && len(o.text) > 0
		if o.at != inValue && !inKey {
			p.space()
		}
		if len(p.held) == 0 {
			return wait
		}
		v := no
		switch o.at {
		case atStart:
			p.take(1)
			o.depth, o.at, v = 1, atKey, yes
		case atKey:
			if p.held[0] == '}' && !inKey {
				p.take(1)
				if o.depth--; o.depth == 0 {
					return o.end(p)
				}
				v = yes
			} else {
				v = o.readKey(p)
			}
		case atColon:
			if p.held[0] == ':' {
				p.take(1)
				o.at, v = atValue, yes
			}
		case atValue:
			v = o.beginValue(p)
		case inValue:
			v = o.readValue(p)
		}
		if v != yes {
			return v
		}
	}
}

func (o *object) readKey(p *Parser) verdict {
	if p.held[0] == ',' && len(o.text) == 0 {
		p.take(1)
		return yes
	}
	if len(o.text) == 0 && strings.IndexByte("{[(", p.held[0]) >= 0 {
		return no
	}
	n, text := o.value.take(p.held, o.text, p.final)
	o.text = text
	p.take(n)
	if o.value.bad || len(o.text) > 0 && o.text[0] != '"' {
		return no
	}
	if !o.value.done {
		return wait
	}
	_ = json.Unmarshal(o.text, &o.key) // a string that the value wrote
	o.value, o.text, o.at = value{}, nil, atColon
	if o.form.known && !o.begun && !o.form.isName(o.key) && !o.form.isArguments(o.key) &&
		o.key != "type" && o.key != "id" && o.key != "function" {
		return no
	}
	if !o.begun && o.name != "" && o.form.isArguments(o.key) {
		o.tell(p)
	}
	return yes
}

// nameKeys and argumentKeys are what families call the two.
var (
	nameKeys     = [...]string{"name", "tool_name", "function", "function_name"}
	argumentKeys = [...]string{"arguments", "parameters", "args", "tool_input"}
	idKeys       = [...]string{"id", "tool_call_id"}
)

func (o *object) beginValue(p *Parser) verdict {
	if o.key == "function" && p.held[0] == '{' {
		p.take(1)
		o.depth++
		o.at = atKey
		return yes
	}
	if o.form.keyIsName && o.name == "" {
		o.setName(p, o.key)
	}
	o.at, o.told = inValue, 0
	return yes
}

func (o *object) isArguments() bool {
	return o.form.isArguments(o.key) || o.form.keyIsName && o.key == o.name
}

func (o *object) readValue(p *Parser) verdict {
	n, text := o.value.take(p.held, o.text, p.final)
	o.text = text
	p.take(n)
	if o.isArguments() && o.begun && len(text) > 0 && text[0] == '{' {
		p.arguments(text[o.told:])
		o.told, o.hasArgs = len(text), true
	}
	if o.value.bad {
		return no
	}
	if !o.value.done {
		return wait
	}
	return o.valueDone(p)
}

func (o *object) valueDone(p *Parser) verdict {
	var s string
	isString := json.Unmarshal(o.text, &s) == nil
	switch {
	case o.isArguments():
		if isString { // JSON within a string
			inner := value{}
			if _, o.text = inner.take([]byte(s), nil, true); inner.bad || len(o.text) == 0 {
				o.text = []byte("{}")
			}
		}
		o.args = o.text
	case o.form.isName(o.key) && o.name == "":
		if !isString || s == "" || !o.setName(p, s) {
			return no
		}
	case slices.Contains(idKeys[:], o.key) && isString:
		o.id = s
	}
	o.tellArguments(p)
	o.value, o.text, o.at = value{}, nil, atKey
	return yes
}

// setName reports the call. Where only arguments tell a call from other objects that have a name, it waits for
// these.
func (o *object) setName(p *Parser, name string) bool {
	if o.form.known && !p.tools.has(name) {
		return false
	}
	o.name = name
	if o.form.known && p.tools == nil && o.args == nil {
		return true // many objects have a name: arguments beside it make a call
	}
	o.tell(p)
	return true
}

func (o *object) tell(p *Parser) {
	o.begun = true
	p.begin(o.name, o.id)
}

// tellArguments reports arguments that are complete, once the name is known.
func (o *object) tellArguments(p *Parser) {
	if !o.begun || o.args == nil {
		return
	}
	if !o.hasArgs {
		if o.args[0] != '{' {
			o.args = []byte("{}")
		}
		p.arguments(o.args)
	}
	o.args, o.hasArgs = nil, true
}

func (o *object) end(p *Parser) verdict {
	if !o.begun {
		return no
	}
	if !o.hasArgs {
		p.arguments([]byte("{}"))
	}
	return yes
}
