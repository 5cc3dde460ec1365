package library

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/hub"
	"github.com/sluice-ai/sluice/storage/others"
	"github.com/sluice-ai/sluice/storage/store"
)

type Pull struct {
	Name     string `arg:"" placeholder:"NAME" help:"OWNER/NAME[:QUANT] of Hugging Face, such as OWNER/NAME:Q4_K_M (or a file's name after the colon), or NAME[:TAG] of Ollama's library; ollama.com/OWNER/NAME of others there. The address of a page or file, as the browser shows it, is taken too."`
	Endpoint string `placeholder:"URL" help:"Mirror to ask in place of huggingface.co, or of Ollama's registry. Default for Hugging Face: $HF_ENDPOINT."`
	Quiet    bool   `short:"q" help:"Say nothing but what went wrong."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

func (Pull) Examples() [2]string {
	return [2]string{`sluice pull OWNER/NAME-GGUF:Q4_K_M`, `HF_TOKEN=hf_... sluice pull OWNER/PRIVATE-GGUF`}
}

// Help is what the flags do not say.
func (Pull) Help() string {
	return "The model is kept in the store ($SLUICE_STORE, else sluice/store in $XDG_DATA_HOME or ~/.local/share, on Windows in %LOCALAPPDATA%) and has " +
		"its name for -m from then on. Without a quantisation it is Q4_K_M, or what comes near it. All parts of a split " +
		"model are fetched; of one without GGUF files its safetensors, with configuration and vocabulary, as a folder. A pull that was stopped goes on where it was; of a model with a wrong checksum nothing is kept. " +
		"A token for models that want one is taken from HF_TOKEN; else that of hf auth login is sent, to huggingface.co alone."
}

func (c *Pull) Run(e *env.Env) error {
	name, err := parseModelName(c.Name)
	if err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	s, err := namedmodel.OpenStore(e.Lookup)
	if err != nil {
		return err
	}
	got, err := pull(ctx, e, s, name, c.Endpoint, c.Quiet || c.JSON)
	if err != nil {
		return err
	}
	m, err := s.Find(PulledName(got))
	if err != nil {
		return err
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, record(s, m, true))
	}
	if c.Quiet {
		return nil
	}
	state := "is in the store"
	if got.Fresh {
		state = "is up to date"
	}
	_, err = fmt.Fprintf(e.Stdout, "%s %s: %s\n%s\n", m.Name, state, env.BinarySize(m.Size()), nextStep(e, m.Name))
	return err
}

// nextStep is the command that runs a model.
func nextStep(e *env.Env, name store.Name) string {
	what := "run"
	if f, err := namedmodel.Open(e.Lookup, name.Full()); err == nil {
		arch, _ := f.Meta.String("general.architecture")
		if n, _ := f.Meta.Int(arch + ".pooling_type"); n > 0 {
			what = "embed"
		}
		_ = f.Close() // it was only read
	}
	return fmt.Sprintf("sluice %s -m %s \"…\"", what, name)
}

// PulledName is the full name of a pulled model.
func PulledName(p *hub.Pulled) store.Name {
	name, _ := p.Manifest.Named() // package hub has checked it
	return name
}

// parseModelName reads a name of the command line.
func parseModelName(text string) (store.Name, error) {
	if others.IsName(text) {
		return store.Name{}, env.Usagef("%.200s is the name of a model that another program keeps: -m takes it, nothing changes it", text)
	}
	name, err := store.ParseName(text)
	if err != nil {
		return name, env.Usagef("%v", err)
	}
	return name, nil
}

// pull brings a model into the store, with a progress bar if a person is watching.
func pull(ctx context.Context, e *env.Env, s *store.Store, name store.Name, endpoint string, quiet bool) (
	*hub.Pulled, error) {
	client := HubFor(e, name, endpoint)
	client.Login = loginToken(e)
	bar := &pullBar{e: e, bar: e.Progress("")}
	if !quiet {
		client.Progress, client.Waits = bar.show, bar.wait
	}
	got, err := client.Pull(ctx, s, name)
	bar.bar.Clear()
	bar.line.Clear()
	locked := hub.Locked(err) && bar.done == 0
	if wrong := (*store.WrongContent)(nil); err != nil && bar.begun && !locked && !errors.As(err, &wrong) {
		fmt.Fprintf(e.Stderr, "sluice: what has come is kept: the same command goes on with it, sluice rm %s removes it\n", name)
	}
	return got, err
}

// HubFor returns a client for the hub where a model is published, or for a mirror of it. It has the token that the
// environment names; whoever may ask a server to pull has not logged in by the Hub's own program.
func HubFor(e *env.Env, name store.Name, endpoint string) *hub.Client {
	token, _ := e.Lookup("HF_TOKEN")
	if mirror, _ := e.Lookup("HF_ENDPOINT"); endpoint == "" && name.Host == store.HuggingFace {
		endpoint = mirror
	}
	return &hub.Client{Endpoint: endpoint, Token: token, Agent: "sluice/" + env.Version()}
}

// loginToken is the token that the Hub's own program keeps after hf auth login; empty, if there is none.
func loginToken(e *env.Env) string {
	path, _ := e.Lookup("HF_TOKEN_PATH")
	if path == "" {
		folder := namedmodel.HubFolder(e.Lookup)
		if folder == "" {
			return ""
		}
		path = filepath.Join(folder, "token")
	}
	f, _, err := safefile.Open(path)
	if err != nil {
		return "" // nobody has logged in
	}
	defer f.Close()
	const most = 4096 // bytes of a token
	text, err := safefile.ReadAll(f, most)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// pullBar shows the progress of a pull: on a terminal continuously, elsewhere in one line at its beginning, and one for
// each pause.
type pullBar struct {
	e     *env.Env
	begun bool
	done  int64

	mu   sync.Mutex // bytes come while another connection pauses
	bar  *env.Bar
	line env.StatusLine
	last string // line about a pause
}

// wait says what a pull waits for.
func (b *pullBar) wait(w hub.Wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := "asking " + w.Host + "…"
	if w.Failed != "" {
		text = fmt.Sprintf("%s %s, trying again in %v (%d of %d)", w.Host, strings.TrimSuffix(w.Failed, "."), w.Pause, w.Try, w.Tries)
	}
	if b.e.IsTerminal(b.e.Stderr) {
		b.bar.Clear()
		b.line.Show(b.e.Stderr, env.Printable(text), b.e.Columns(b.e.Stderr))
	} else if w.Failed != "" && text != b.last { // several connections fail alike
		b.last = text
		fmt.Fprintln(b.e.Stderr, "sluice: "+env.Printable(text))
	}
}

func (b *pullBar) show(p hub.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line.Clear()
	b.done = p.Done
	if !b.begun {
		b.begun, b.bar.From = true, p.Done
		if !b.e.IsTerminal(b.e.Stderr) {
			text := "pulling %s: %s\n"
			if p.Done > 0 {
				text = "pulling %s: %s, of which %s are there\n"
				fmt.Fprintf(b.e.Stderr, text, p.Name, env.BinarySize(p.Total), env.BinarySize(p.Done))
				return
			}
			fmt.Fprintf(b.e.Stderr, text, p.Name, env.BinarySize(p.Total))
		}
	}
	if !b.e.IsTerminal(b.e.Stderr) {
		return
	}
	if b.bar.What = "pulling " + p.Name.String(); p.Waiting {
		b.bar.What += " (by another run)"
	}
	b.bar.Show(p.Done, p.Total)
}

// PullFlag lets a command pull what it runs.
type PullFlag struct {
	Pull bool `help:"Pull the model first, if -m is a name that is not in the store."`
}

// Fetch pulls the models among some values of -m that are names and not in the store, if --pull allows it.
func (f *PullFlag) Fetch(ctx context.Context, e *env.Env, values ...string) error {
	for _, value := range values {
		_, err := namedmodel.Locate(e.Lookup, value)
		absent := (*store.Absent)(nil)
		if !f.Pull || !errors.As(err, &absent) {
			continue // other errors are reported when the file is opened
		}
		s, err := namedmodel.OpenStore(e.Lookup)
		if err != nil {
			return err
		}
		if _, err := pull(ctx, e, s, absent.Name, "", false); err != nil {
			return err
		}
	}
	return nil
}
