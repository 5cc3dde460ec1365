package ask

import (
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/stages/chat"
)

// ThinkFlag turns a model's thinking on or off.
type ThinkFlag struct {
	Think Thinks `default:"" placeholder:"on|off" help:"Have the model think before it answers, or not, where its template lets that be chosen. Default: what the model does by itself."`
}

// Thinks is whether a model thinks before it answers: on, off, or empty for what the model does by itself.
type Thinks string

// UnmarshalText takes on and off, and what other programs say: true and false.
func (t *Thinks) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "", "on", "off":
		*t = Thinks(s)
	case "true":
		*t = "on"
	case "false":
		*t = "off"
	default:
		return fmt.Errorf("%q: want on or off", s)
	}
	return nil
}

// Values are what shells complete.
func (*Thinks) Values() []string { return []string{"on", "off"} }

// vars are the template's variables that the flag sets.
func (f *ThinkFlag) vars() *jsontext.Object {
	all := &jsontext.Object{}
	if f.Think != "" {
		chat.Think(all, f.Think == "on")
	}
	return all
}

// unchanged says, if thinking is to be turned on or off, that the model's template does not let that be chosen; else
// nothing.
func (f *ThinkFlag) unchanged(engine *actors.Engine) string {
	template, _ := chat.Own(engine.Metadata())
	if f.Think == "" || chat.MayThink(template) {
		return ""
	}
	return fmt.Sprintf("the template of %s has no switch for thinking: it stays as it is", env.Printable(engine.Info.Name))
}
