package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/stages/constrain"
)

// settings are the names for /set: those of the sampling flags, with underscores accepted, too.
func settings() (names []string) {
	for _, flag := range settingParser(new(compute.SamplingFlags)).Model.Flags {
		switch flag.Name {
		case "help", "logit-bias":
		case "temp":
			names = append(names, "temperature")
		default:
			names = append(names, strings.ReplaceAll(flag.Name, "-", "_"))
		}
	}
	return names
}

func settingParser(to *compute.SamplingFlags) *kong.Kong {
	parser, err := kong.New(to, kong.NoDefaultHelp(), kong.Exit(func(int) {}))
	if err != nil {
		panic(err) // the struct is wrong
	}
	return parser
}

// doSet changes sampling from the next answer on.
func (t *talk) doSet(ctx context.Context, arg string) error {
	if first, rest, _ := strings.Cut(arg, " "); first == "system" { // as other programs have it
		return t.doSystem(ctx, strings.TrimSpace(rest))
	}
	words := strings.Fields(strings.ReplaceAll(arg, "=", " "))
	if len(words) == 3 && words[0] == "parameter" {
		words = words[1:]
	}
	switch len(words) {
	case 0:
		p := &t.sampling
		t.table(fmt.Sprintf("temperature\t%g", p.Temp), fmt.Sprintf("top_k\t%d", p.TopK), fmt.Sprintf("top_p\t%g", p.TopP),
			fmt.Sprintf("min_p\t%g", p.MinP), fmt.Sprintf("repeat_penalty\t%g", p.RepeatPenalty), fmt.Sprintf("seed\t%d", p.Seed),
			"think\t"+cmp.Or(string(t.thinks.Think), "as the model does"), "format\t"+t.format(),
			"verbose\tor quiet: what is said after an answer", "others\t"+strings.Join(otherSettings(), ", "))
		return nil
	case 2:
	case 1:
		switch words[0] { // as other programs have it
		case "think":
			return t.setThinking("on")
		case "nothink":
			return t.setThinking("off")
		case "verbose", "quiet":
			t.setVerbose(words[0] == "verbose")
			return nil
		}
		fallthrough
	default:
		return errors.New("want: /set NAME VALUE, such as /set temperature 0.5")
	}
	name := strings.ReplaceAll(strings.ToLower(words[0]), "_", "-")
	switch name {
	case "think":
		return t.setThinking(words[1])
	case "format":
		return t.setFormat(words[1])
	}
	if name == "temperature" {
		name = "temp"
	}
	var given compute.SamplingFlags
	if _, err := settingParser(&given).Parse([]string{"--" + name + "=" + words[1]}); err != nil {
		if strings.HasPrefix(err.Error(), "unknown flag") {
			return fmt.Errorf("there is no setting %s: want think, format, system, or one of %s", env.Printable(words[0]), strings.Join(settings(), ", "))
		}
		return fmt.Errorf("/set %s: %w", env.Printable(words[0]), err)
	}
	changed, err := given.Over(t.sampling, t.engine)
	if err != nil {
		return err
	}
	t.sampling = changed
	t.note("%s is %s from the next answer on", words[0], words[1])
	return nil
}

// shownSettings are those that /set shows with their values.
var shownSettings = []string{"temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed"}

func otherSettings() []string {
	return slices.DeleteFunc(settings(), func(name string) bool { return slices.Contains(shownSettings, name) })
}

func (t *talk) format() string {
	if t.form != nil {
		return "json"
	}
	return "text"
}

// setFormat has answers be JSON objects, or any text, from the next one on.
func (t *talk) setFormat(to string) error {
	switch to {
	case "text":
		t.form = nil
	case "json":
		t.form = constrain.Source{Kind: constrain.Object}.Form("format")
	default:
		return errors.New("want: /set format json, or /set format text")
	}
	t.note("format is %s from the next answer on", to)
	return nil
}

// setVerbose has answers be followed by all their counts, or by their number of tokens and its rate alone.
func (t *talk) setVerbose(on bool) {
	t.verbose = on
	if on {
		t.note("each answer is followed by what /stats says of it")
	} else {
		t.note("each answer is followed by a line")
	}
}

// setThinking turns thinking on or off from the next answer on.
func (t *talk) setThinking(to string) error {
	if to == "" || t.thinks.Think.UnmarshalText([]byte(to)) != nil {
		return errors.New("want: /set think on, or /set think off")
	}
	if note := t.thinks.unchanged(t.engine); note != "" {
		t.note("%s", note)
		return nil
	}
	t.note("think is %s from the next answer on", t.thinks.Think)
	return nil
}
