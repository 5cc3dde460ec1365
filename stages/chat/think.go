package chat

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Think sets the template's variables for whether the model is to think. Templates have several names for it.
func Think(vars *jsontext.Object, think bool) {
	mode := "disabled"
	if think {
		mode = "enabled"
	}
	vars.Set("enable_thinking", jsontext.Bool(think))
	vars.Set("thinking", jsontext.Bool(think))
	vars.Set("thinking_mode", jsontext.String(mode))
}

// MayThink reports whether a template reads such a variable.
func MayThink(template string) bool {
	for _, name := range []string{"enable_thinking", "thinking_mode", "thinking is", "if thinking", "and thinking", "not thinking"} {
		if strings.Contains(template, name) {
			return true
		}
	}
	return false
}
