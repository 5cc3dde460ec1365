package decode

import "github.com/sluice-ai/sluice/internal/jsontext"

// Think tells the template whether the model is to think. Templates have several names for it.
func Think(vars *jsontext.Object, think bool) {
	mode := "disabled"
	if think {
		mode = "enabled"
	}
	vars.Set("enable_thinking", jsontext.Bool(think))
	vars.Set("thinking", jsontext.Bool(think))
	vars.Set("thinking_mode", jsontext.String(mode))
}

// HowHard tells the template how hard the model is to think, in the words of any API. What templates have in common are
// low, medium and high; those with the other name for it have no medium.
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

// Effort reads whether, and how hard, the model is to think, as OpenAI has it; "" where that is not said.
func (f Fields) Effort(name string, vars *jsontext.Object) (effort string) {
	f.Text(name, &effort)
	switch effort {
	case "":
	case "none":
		Think(vars, false)
	case "minimal", "low", "medium", "high", "xhigh", "max":
		Think(vars, true)
		HowHard(vars, effort)
	default:
		raw, _ := f.Get(name)
		f.Wrong(name, raw, `"none", "minimal", "low", "medium", "high", "xhigh" or "max"`)
	}
	return effort
}
