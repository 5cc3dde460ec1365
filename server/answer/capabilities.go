package answer

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat"
)

// Capabilities lists what a model can do, in the names by which clients enable features. A model whose file cannot be
// read is taken for one that writes text.
func (e *Entry) Capabilities() []string {
	all := []string{"completion"}
	h := e.Header
	if h == nil {
		return all
	}
	if h.Embeds {
		return []string{"embedding"}
	}
	template, _ := chat.Own(h.Settings)
	for _, c := range []struct{ sign, name string }{{"tools", "tools"}, {"think", "thinking"}} {
		if strings.Contains(template, c.sign) {
			all = append(all, c.name)
		}
	}
	if e.Model != nil && e.Model.Habits.Sees {
		all = append(all, "vision")
	}
	if h.Fills {
		all = append(all, "insert")
	}
	return all
}
