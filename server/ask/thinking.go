package ask

import "github.com/sluice-ai/sluice/stages/chat/jinja"

// Think tells the template whether the model is to think. Templates have several names for it.
func Think(vars *jinja.Dict, think bool) {
	mode := "disabled"
	if think {
		mode = "enabled"
	}
	vars.Set("enable_thinking", jinja.Bool(think))
	vars.Set("thinking", jinja.Bool(think))
	vars.Set("thinking_mode", jinja.Str(mode))
}

// HowHard tells the template how hard the model is to think, in the words of any API. What templates have in common are
// low, medium and high; those with the other name for it have no medium.
func HowHard(vars *jinja.Dict, effort string) {
	switch effort {
	case "minimal":
		effort = "low"
	case "xhigh", "max":
		effort = "high"
	}
	vars.Set("reasoning_effort", jinja.Str(effort))
	if effort == "medium" {
		effort = "high"
	}
	vars.Set("thinking_effort", jinja.Str(effort))
}

// Effort reads whether, and how hard, the model is to think, as OpenAI has it; "" where that is not said.
func (f Fields) Effort(name string, vars *jinja.Dict) (effort string) {
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
