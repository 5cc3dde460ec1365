package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/ask"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/cluster"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/paint"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/serve"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/text"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/watch"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/weights"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/system"
)

// about is the top of `sluice --help`.
const about = `Runs large language models on this machine.

Without -m, commands use a small demonstration model that is part of the program. It has 26 million parameters and
knows capitals, opposites, small sums and short Go functions: enough to see that everything works. For a real model,
pull one and name it, sluice pull OWNER/NAME-GGUF and sluice run -m OWNER/NAME-GGUF "...", or name a GGUF file.`

// cli lists the commands in the order of the help.
// Wide: each is a command.
type cli struct {
	Run        ask.Run            `cmd:"" help:"Answer a prompt."`
	Chat       ask.Chat           `cmd:"" help:"Talk with a model."`
	Serve      serve.Serve        `cmd:"" help:"Serve a model over HTTP, with the APIs of OpenAI, Anthropic, Ollama and llama-server, and a page for browsers."`
	Pull       library.Pull       `cmd:"" help:"Get a model from Hugging Face, or from Ollama's registry, into the store."`
	List       library.List       `cmd:"" help:"List the models in the store."`
	Show       library.Show       `cmd:"" help:"Show what a model of the store is, where it came from, and its files."`
	Rm         library.Rm         `cmd:"" help:"Remove models from the store."`
	Cp         library.Cp         `cmd:"" help:"Give a model of the store another name."`
	Create     library.Create     `cmd:"" help:"Make a model of another one and a Modelfile: with a system message, parameters, a template."`
	Inspect    weights.Inspect    `cmd:"" help:"Show what is in a model file."`
	Tokenize   text.Tokenize      `cmd:"" help:"Turn text into token ids."`
	Detokenize text.Detokenize    `cmd:"" help:"Turn token ids into text."`
	Template   text.Template      `cmd:"" help:"Show a model's chat template, or what one makes of a conversation."`
	Grammar    text.Grammar       `cmd:"" help:"Say which texts, or tokens, a schema, an expression or a grammar allows."`
	Image      paint.Image        `cmd:"" help:"Make a picture of a text."`
	Upscale    paint.Upscale      `cmd:"" help:"Make a picture larger, by an upscaler."`
	Embed      ask.Embed          `cmd:"" help:"Turn texts into vectors, by an embedding model."`
	Parse      text.Parse         `cmd:"" help:"Say what a model's raw answer holds: text, thoughts and calls of tools."`
	Logits     measure.Logits     `cmd:"" help:"Write the logits of every position of some tokens."`
	Perplexity measure.Perplexity `cmd:"" help:"Measure how well a model predicts a text."`
	KVProfile  measure.KVProfile  `cmd:"" name:"kv-profile" help:"Measure which layers' KV cache wants more bits, for --kv auto."`
	Imatrix    measure.Imatrix    `cmd:"" help:"Measure which columns of a model's weights matter, for quantize."`
	Convert    weights.Convert    `cmd:"" help:"Write the folder of a model, as it is trained with, as a GGUF file."`
	Quantize   weights.Quantize   `cmd:"" help:"Write a model again in fewer bits."`
	Plan       measure.Plan       `cmd:"" help:"Show where the weights of a model would lie, and how fast it should be."`
	Suggest    measure.Suggest    `cmd:"" help:"Say which known models fit this machine, and how fast they should be."`
	Bench      measure.Bench      `cmd:"" help:"Measure how fast a model runs here."`
	Synth      weights.Synth      `cmd:"" help:"Write a model of random weights in the shape of a real one."`
	Replay     measure.Replay     `cmd:"" help:"Replay a recorded trace: answer its requests again and compare, or compare what keeps experts in memory."`
	Why        measure.Why        `cmd:"" help:"Say why a token of a recorded answer came: logits, samplers, grammar, experts, waiting."`
	Trace      watch.Trace        `cmd:"" help:"Record what happens inside a running server, and show what its device waits for."`
	Top        watch.Top          `cmd:"" help:"Watch a running server: models, device, actors."`
	Stop       watch.Stop         `cmd:"" help:"Have a running server unload a model."`
	Cluster    cluster.Cluster    `cmd:"" help:"Several machines that answer together."`
	Health     watch.Health       `cmd:"" help:"Ask whether a running server can answer."`
	Config     config             `cmd:"" help:"Show which settings are in force, and where they come from."`
	Completion completion         `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Man        man                `cmd:"" help:"Print the manual page."`
	Doctor     measure.Doctor     `cmd:"" help:"Show what this machine offers, what is missing, and what to do."`

	Version kong.VersionFlag `help:"Print the version."`
}

// BeforeResolve reads the settings, before flags that were not given take them.
func (*cli) BeforeResolve(call *kong.Context, s *configuration) error { return s.load(call.Model) }

// newConfiguration returns the configuration of the environment and the file; the file is not read yet.
func newConfiguration(e *env.Env) *configuration {
	return &configuration{lookup: e.Lookup, root: e.Root, folder: system.ConfigFolder(e.Lookup)}
}

// newParser makes the parser of the command line. exit is called after help or the version was printed.
func newParser(e *env.Env, exit func(code int)) (*kong.Kong, error) {
	return newParserWith(e, newConfiguration(e), exit)
}

func newParserWith(e *env.Env, s *configuration, exit func(code int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Bind(s),
		kong.Resolvers(s),
		kong.Name("sluice"),
		kong.Description(about),
		kong.Vars{"version": "sluice " + env.Version(), "kv": strings.Join(backend.KVNames(), ","),
			"kvs": backend.KVList(), "kvv": strings.Join(backend.KVNamesOfV(), ",")},
		kong.Writers(e.Stdout, e.Stderr),
		kong.Exit(exit),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
	)
}

// exampler is a command whose help ends with two lines to paste.
type exampler interface{ Examples() [2]string }

func (*cli) Examples() [2]string {
	return [2]string{`sluice run "What is the capital of France?"`, `sluice doctor`}
}

// printHelp prints kong's help and the two examples below it.
func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	node := c.Model.Node
	if s := c.Selected(); s != nil {
		node = s
	}
	try := node.Target.Addr().Interface().(exampler).Examples()
	_, err := fmt.Fprintf(c.Stdout, "\nTry:\n  %s\n  %s\n", try[0], try[1])
	return err
}

// given refuses flags that were given empty, as by an unset variable of a shell, if an empty value means something else
// than no flag.
func given(call *kong.Context) error {
	telling := map[string]string{
		"model": "-m is empty: want a model file, or leave it out for the small embedded model",
		"addr":  "--addr is empty: want HOST:PORT, such as 127.0.0.1:8080",
	}
	for _, p := range call.Path {
		if p.Flag == nil {
			continue
		}
		if text, ok := p.Flag.Target.Interface().(string); ok && text == "" && telling[p.Flag.Name] != "" {
			return env.Usagef("%s", telling[p.Flag.Name])
		}
	}
	return nil
}
