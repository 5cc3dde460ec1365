package decode

import (
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat"
)

// HowHard sets the template's variables for how hard the model is to think. effort is a word of any API; templates
// share low, medium and high, those with thinking_effort lack medium.
func HowHard(vars *jsontext.Object, effort string) {
	switch effort {
	case "minimal":
		effort = "low"
	case "xhigh", "max":
		effort = "high"
	}
	vars.Set("reasoning_effort", jsontext.String(effort))
	if effort == "medium" {
		effort = "high"
	}
	vars.Set("thinking_effort", jsontext.String(effort))
}

// Effort decodes a field with OpenAI's words for whether, and how hard, the model is to think; "" if it is absent.
func (f Fields) Effort(name string, vars *jsontext.Object) (effort string) {
	f.Text(name, &effort)
	switch effort {
	case "":
	case "none":
		chat.Think(vars, false)
	case "minimal", "low", "medium", "high", "xhigh", "max":
		chat.Think(vars, true)
		HowHard(vars, effort)
	default:
		raw, _ := f.Get(name)
		f.Wrong(name, raw, `"none", "minimal", "low", "medium", "high", "xhigh" or "max"`)
	}
	return effort
}
