package chat

import (
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Habits are what one template expects of messages, besides what all templates expect.
type Habits struct {
	Roles []string // that messages may have; nil: any
	Text  bool     // the arguments of calls are JSON in a string, no object
	Bare  bool     // a message of calls alone has no content, where others want an empty one
	Lists bool     // content is a list of parts, even where it is one text
	Sees  bool     // the model takes pictures: their marks stand in the text; see Marked

	spelling *spelling // calls stand in the text; nil: the template writes them
}

// usualRoles are the roles that messages for any template may have. developer becomes system.
var usualRoles = [...]string{"system", "developer", "user", "assistant", "tool"}

// Habits returns the template's habits. Roles are the usual ones, and those that the template compares roles with.
func (t *Template) Habits() Habits { return t.habits }

// learn finds a template's habits. Those of calls are found by trial: the first with which the template writes the
// arguments of a call, and as JSON, not as Python's literals. DeepSeek's templates, for example, leave calls out
// unless there is no content, and fail when arguments are an object.
func (t *Template) learn(source string) (h Habits) {
	h.Roles = usualRoles[:]
	for _, role := range t.parsed.Roles() {
		if !slices.Contains(h.Roles, role) {
			h.Roles = append(h.Roles[:len(h.Roles):len(h.Roles)], role)
		}
	}
	h.Lists = strings.Contains(source, "image") && t.lists()
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
		one.Roles, one.Lists = h.Roles, h.Lists
		if t.writes(one) {
			return one
		}
	}
	return h
}

// lists says whether the template writes texts only where they are parts of a list, as LLaVA's does.
func (t *Template) lists() bool {
	const said = "qqsaid"
	shows := func(h Habits) bool {
		out, err := t.renderConversation(`{"messages":[{"role":"user","content":"`+said+`"}]}`, h)
		return err == nil && strings.Contains(out, said)
	}
	return !shows(Habits{}) && shows(Habits{Lists: true})
}

// writes says whether the template writes a call, when messages are given to it by these habits.
func (t *Template) writes(h Habits) bool {
	const value = "qqvalue"
	const talk = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"qq7id0123",` +
		`"type":"function","function":{"name":"qqfunction","arguments":{"qqkey":"` + value + `"}}}]}],"tools":[{"type":"function",` +
		`"function":{"name":"qqfunction","description":"x","parameters":{"type":"object","properties":{"qqkey":{"type":"string"}}}}}]}`
	out, err := t.renderConversation(talk, h)
	return err == nil && strings.Contains(out, value) && !strings.Contains(out, "'"+value+"'")
}

// arguments converts the arguments of a call to the form that the template expects. What is no call of a function
// stays as it is.
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
