package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// about is the top of `sluice --help`.
const about = `Runs large language models on this machine.

Without -m, commands use a small demonstration model that is part of the program. It has 26 million parameters and
knows capitals, opposites, small sums and short Go functions: enough to see that everything works. For a real model,
pull one and name it, sluice pull OWNER/NAME-GGUF and sluice run -m OWNER/NAME-GGUF "...", or name a GGUF file.`

// cli lists the commands in the order of the help.
type cli struct {
	Run        runCmd        `cmd:"" help:"Answer a prompt."`
	Chat       chatCmd       `cmd:"" help:"Talk with a model."`
	Serve      serveCmd      `cmd:"" help:"Serve a model over HTTP, with the APIs of OpenAI, Anthropic, Ollama and llama-server, and a page for browsers."`
	Pull       pullCmd       `cmd:"" help:"Get a model from Hugging Face, or from Ollama's registry, into the store."`
	List       listCmd       `cmd:"" help:"List the models in the store."`
	Show       showCmd       `cmd:"" help:"Show where a model of the store came from, and its files."`
	Rm         rmCmd         `cmd:"" help:"Remove models from the store."`
	Cp         cpCmd         `cmd:"" help:"Give a model of the store another name."`
	Create     createCmd     `cmd:"" help:"Make a model of another one and a Modelfile: with a system message, parameters, a template."`
	Inspect    inspectCmd    `cmd:"" help:"Show what is in a model file."`
	Tokenize   tokenizeCmd   `cmd:"" help:"Turn text into token ids."`
	Detokenize detokenizeCmd `cmd:"" help:"Turn token ids into text."`
	Template   templateCmd   `cmd:"" help:"Show a model's chat template, or what one makes of a conversation."`
	Grammar    grammarCmd    `cmd:"" help:"Say which texts, or tokens, a schema, an expression or a grammar allows."`
	Embed      embedCmd      `cmd:"" help:"Turn texts into vectors, by an embedding model."`
	Parse      parseCmd      `cmd:"" help:"Say what a model's raw answer holds: text, thoughts and calls of tools."`
	Logits     logitsCmd     `cmd:"" help:"Write the logits of every position of some tokens."`
	Perplexity perplexityCmd `cmd:"" help:"Measure how well a model predicts a text."`
	Imatrix    imatrixCmd    `cmd:"" help:"Measure which columns of a model's weights matter, for quantize."`
	Convert    convertCmd    `cmd:"" help:"Write the folder of a model, as it is trained with, as a GGUF file."`
	Quantize   quantizeCmd   `cmd:"" help:"Write a model again in fewer bits."`
	Plan       planCmd       `cmd:"" help:"Show where the weights of a model would lie, and how fast it should be."`
	Bench      benchCmd      `cmd:"" help:"Measure how fast a model runs here."`
	Synth      synthCmd      `cmd:"" help:"Write a model of random weights in the shape of a real one."`
	Replay     replayCmd     `cmd:"" help:"Replay a recorded trace: compare what keeps experts in memory."`
	Trace      traceCmd      `cmd:"" help:"Record what happens inside a running server, and show what its device waits for."`
	Top        topCmd        `cmd:"" help:"Watch a running server: models, device, actors."`
	Health     healthCmd     `cmd:"" help:"Ask whether a running server can answer."`
	Config     configCmd     `cmd:"" help:"Show which settings are in force, and where they come from."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands and flags in a shell."`
	Doctor     doctorCmd     `cmd:"" help:"Show what this machine offers, what is missing, and what to do."`

	Version kong.VersionFlag `help:"Print the version."`
}

// BeforeResolve reads the settings, before flags that were not given take them.
func (*cli) BeforeResolve(call *kong.Context, s *configuration) error { return s.load(call.Model) }

// configuration is that of the environment and the file, which is not read yet.
func newConfiguration(e *env) *configuration { return &configuration{lookup: e.lookup, root: e.root} }

// newParser reads the command line. exit is called after help or the version was printed.
func newParser(e *env, exit func(code int)) (*kong.Kong, error) {
	return newParserWith(e, newConfiguration(e), exit)
}

func newParserWith(e *env, s *configuration, exit func(code int)) (*kong.Kong, error) {
	return kong.New(&cli{},
		kong.Bind(s),
		kong.Resolvers(s),
		kong.Name("sluice"),
		kong.Description(about),
		kong.Vars{"version": "sluice " + version()},
		kong.Writers(e.stdout, e.stderr),
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

// given refuses flags that mean something else than their absence and were given empty: a shell's variable was.
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
			return usagef("%s", telling[p.Flag.Name])
		}
	}
	return nil
}
