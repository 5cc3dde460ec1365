package chat

import (
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Habits are what a template expects of messages, beside what all templates do.
type Habits struct {
	Roles []string // that messages may have; nil: any
	Text  bool     // the arguments of calls are JSON in a string, no object
	Bare  bool     // a message of calls alone has no content, where others want an empty one

	spelling *spelling // calls stand in the text; nil: the template writes them
}

// usualRoles are those that any template may be given. That of developer becomes system.
var usualRoles = [...]string{"system", "developer", "user", "assistant", "tool"}

// Habits are the template's. Its roles are the usual ones, and those that it compares roles with itself.
func (t *Template) Habits() Habits { return t.habits }

// learn finds a template's habits. Those of calls are the first with which it writes one, as JSON rather than as Python
// has it: DeepSeek's, say, leave calls out unless there is no content, and fail over an object.
func (t *Template) learn(source string) (h Habits) {
	h.Roles = usualRoles[:]
	for _, role := range t.parsed.Roles() {
		if !slices.Contains(h.Roles, role) {
			h.Roles = append(h.Roles[:len(h.Roles):len(h.Roles)], role)
		}
	}
	var ways []Habits
	if strings.Contains(source, "tool_calls") {
		ways = []Habits{{}, {Bare: true}, {Text: true}, {Text: true, Bare: true}}
	}
	for i := range spellings {
		if strings.Contains(source, spellings[i].sign) {
			ways = append(ways, Habits{spelling: &spellings[i]})
		}
	}
	for _, one := range ways {
		if one.Roles = h.Roles; t.writes(one) {
			return one
		}
	}
	return h
}

// writes says whether the template writes a call that is given to it in this way.
func (t *Template) writes(h Habits) bool {
	const value = "qqvalue"
	const talk = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"qq7id0123",` +
		`"type":"function","function":{"name":"qqfunction","arguments":{"qqkey":"` + value + `"}}}]}],"tools":[{"type":"function",` +
		`"function":{"name":"qqfunction","description":"x","parameters":{"type":"object","properties":{"qqkey":{"type":"string"}}}}}]}`
	out, err := t.renderConversation(talk, h)
	return err == nil && strings.Contains(out, value) && !strings.Contains(out, "'"+value+"'")
}

// arguments puts those of a call into the form that the template expects. What is no call of a function stays as it is.
func (h Habits) arguments(c *Call, b *jsontext.Budget) error {
	switch given := c.Arguments.(type) {
	case *jsontext.Object:
		if h.Text {
			text, err := ToJSON(given)
			c.Arguments = jsontext.String(text)
			return err
		}
	case jsontext.String:
		if h.Text {
			return nil
		}
		v, err := jsontext.Parse(string(given), b)
		if b.Spent(err) {
			return err
		}
		if object, ok := v.(*jsontext.Object); ok && err == nil {
			c.Arguments = object
		}
	}
	return nil
}
