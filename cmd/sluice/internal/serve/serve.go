package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/server/kvevents"
)

// Serve serves models over HTTP.
// Wide: they are the flags of a command.
type Serve struct {
	Models []string `name:"model" short:"m" sep:"none" placeholder:"[NAME=]MODEL" help:"Model file (GGUF), folder of a model, or name of one in the store, or member://MEMBER/MODEL, which a member of the cluster runs and this one gets, and how clients call it. May be repeated: model in a request chooses, and of equal names the later ones get a number. Loaded at once, as far as there is room. Without it and --models: the models of the store, or, if that is empty, the small embedded model."`

	Folder      string        `name:"models" placeholder:"FOLDER" help:"Folder of model files, also in folders below, which clients call by their names without .gguf. Each is loaded when it is asked for; others leave for it, but none that answers."`
	Stored      bool          `name:"stored" help:"Serve the models of the store (sluice list) in the same way, beside those of -m and --models."`
	Allow       bool          `name:"allow-store" help:"Let clients pull, create, copy and delete models of the store, through Ollama's API, and serve them (--stored). They may fill the disk: give it to those with a key."`
	KeepAlive   time.Duration `name:"keep-alive" placeholder:"TIME" help:"Unload models that nobody asked for in so long, such as 10m or 1h30m. Default: only when others need their memory."`
	Lora        []string      `name:"lora" sep:"none" placeholder:"[NAME=]PATH[:SCALE]" help:"Adapter (LoRA) of the model, a GGUF file or a folder of PEFT, which requests ask for: model is its name, or MODEL+NAME. May be repeated."`
	Loras       string        `name:"loras" placeholder:"FOLDER" help:"Folder of adapters that requests ask for by the names of their files or folders. With --allow-store clients load and unload them."`
	ImageModels []string      `name:"image-model" sep:"none" placeholder:"[NAME=]PATH" help:"Folder of a model that makes pictures, or the file of its transformer with the others beside it (sluice image), for /v1/images/generations and /sdapi/v1/txt2img. May be repeated. The processor computes it, in turns with texts that it computes."`
	ImageRAM    env.Size      `name:"image-ram" placeholder:"SIZE" help:"Memory for the weights of a part of a model that makes pictures, such as 6G; what does not fit is streamed from its file. Default: all of them, if they fit this machine."`

	compute.Flags
	Addr   string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on. The default reaches this machine only; :8080 is all of its addresses; port 0 takes a free one. Default: 127.0.0.1:8080."`
	APIKey []string `name:"api-key" sep:"none" placeholder:"KEY" help:"Key that clients must send. May be repeated. Other users of this machine can read it: better use a file. Without a key, anybody who reaches the address may ask."`

	APIKeyFile []string `name:"api-key-file" sep:"none" placeholder:"FILE" help:"File with such keys, one in each line; - is standard input. May be repeated. SLUICE_API_KEY in the environment is a key too."`
	Name       string   `placeholder:"NAME" help:"Name of the only model for clients. Default: the one in its file."`
	compute.RecordFlags
	Parallel      int      `default:"32" placeholder:"N" help:"Answers computed at once, 1 to 256; more wait. Default: 32."`
	MetricsCompat []string `name:"metrics-compat" enum:"vllm,llamacpp" placeholder:"SERVER" help:"Have metrics under the names of vllm and llamacpp as well, for dashboards made for them."`
	compute.StateFlag
	compute.IncidentsFlag
	compute.KeepFlag
	accessFlags
	tlsFlags
	clusterFlags
	tracingFlags
	eventFlags
	library.PullFlag
	compute.TraceFlag
	env.ForceFlag

	lenders *lenders            // of models that other members run
	manager *manager            // of --allow-store
	painter *painter            // nil: nothing makes pictures
	typed   map[string][]string // keys of files that can be read once only
}

func (Serve) Examples() [2]string {
	return [2]string{`sluice serve -m model.gguf --addr :8080 --api-key-file keys.txt`, `sluice serve --models ~/models -m small=b.gguf --ram 24G --keep-alive 30m`}
}

// Help is what the flags do not say.
func (Serve) Help() string {
	return "The address is taken at once, and who connects waits until the model is loaded (GET /health says how far it is); then " +
		"the URL is printed. " +
		"Requests say how tokens are chosen; what they leave out is the model's own recommendation. Ctrl-C or SIGTERM " +
		"lets open answers finish for up to 10 seconds, a second one cuts them. It ends with 0 after the first. SIGHUP has files of " +
		"keys and the lists of models read again, while answers go on; that a terminal is closed is as Ctrl-C, except under nohup."
}

// maxParallel bounds what --parallel may ask for: the engine holds no more requests.
const maxParallel = 256

// patience is how long open answers may go on after the server is told to stop.
const patience = 10 * time.Second

func (c *Serve) Run(e *env.Env) (err error) {
	c.Stored = c.Stored || c.Allow || c.fromStore(e)
	if err := env.Within("--parallel", c.Parallel, 1, maxParallel); err != nil {
		return err
	}
	keys, err := c.keys(e)
	if err != nil {
		return err
	}
	files, err := c.files(e)
	if err != nil {
		return err
	}
	options, err := c.serverOptions(e, keys)
	if err != nil {
		return err
	}
	defer lastSpans(options.Tracer)
	spans, done, err := c.TraceFlag.Open(e, c.Force, paths(files)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	tape, err := c.Begin(e, c.Force, paths(files)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tape.Close()) }()
	ctx, hangUps, cancel := e.Serving(context.Background())
	defer cancel()
	ln, err := c.prepare(ctx, e, files, keys)
	if err != nil {
		return err
	}
	defer ln.Close()
	incidents, closed, err := c.lasting(ctx, e, &options)
	if err != nil {
		return err
	}
	defer closed()
	s := server.Loading(options)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	c.lenders.meet(c, s)
	l, err := c.load(ctx, e, files, s.Progress, spans, recording(tape, incidents))
	if err != nil {
		s.Close()
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	s.Loaded(describe(l))
	c.begin(s)
	r := newReloader(c, e, s, l, keys) // before anybody knows of the server and changes files
	if err := c.announce(e, l, ln.Addr(), len(keys) > 0); err != nil {
		return err
	}
	if ended, err := r.until(ctx, hangUps, served); ended {
		return err
	}
	return c.stop(e, s)
}

// lasting has pictures made, the server become a member of its cluster, and what outlives it kept in --state, until
// closed is called. Models record on incidents, unless that is nil.
func (c *Serve) lasting(ctx context.Context, e *env.Env, o *server.Options) (incidents *actors.Tape, closed func(),
	err error) {
	if o.Sessions, err = c.Sessions(&c.Flags, o.Log); err != nil {
		return nil, nil, err
	}
	put, err := c.painters(o)
	if err != nil {
		return nil, nil, err
	}
	answers, written, err := c.Answers(e, &c.Flags, o.Log)
	if err == nil {
		o.Answers = answers
		incidents, err = c.Incidents(&c.Flags, c.State, o.Log)
	}
	if err == nil {
		err = c.clusterFlags.open(e, &c.Flags, o)
	}
	if o.Cluster != nil {
		c.Identified()
	}
	c.lenders.join(ctx, o.Cluster, &c.Flags, o.Log)
	return incidents, func() {
		if err := c.lenders.close(); err != nil {
			o.Log.Error().Err(err).Msg("closing models that came from other members")
		}
		c.eventFlags.close()
		c.clusterFlags.end()
		written()
		incidents.Close()
		if err := put(); err != nil {
			o.Log.Error().Err(err).Msg("giving back the processor that made pictures")
		}
	}, err
}

// recording has models record on tapes, of which either may be nil.
func recording(file *compute.Tape, incidents *actors.Tape) func(*actors.Model) {
	return func(m *actors.Model) {
		file.Attach(m)
		if incidents != nil {
			m.Tapes = append(m.Tapes, incidents)
		}
	}
}

// fromStore says whether the models of the store are served because nothing else was named.
func (c *Serve) fromStore(e *env.Env) bool {
	if len(c.Models) > 0 || c.Folder != "" || c.Name != "" {
		return false
	}
	all, err := stored(e)
	return err == nil && len(all.list()) > 0
}

// serverOptions returns the server's options that the flags give, without its log.
func (c *Serve) serverOptions(e *env.Env, keys []string) (server.Options, error) {
	o, err := c.options(keys)
	if err == nil {
		err = c.eventFlags.check(len(keys) > 0, c.SharePrefix)
	}
	if err != nil {
		return o, err
	}
	c.Log = cmp.Or(c.Log, "warn")
	o.Log, o.Version = c.Logger(e), env.Version()
	for _, other := range c.MetricsCompat {
		o.MetricsCompat = append(o.MetricsCompat, server.Compat(other))
	}
	if c.Allow {
		s, err := namedmodel.OpenStore(e.Lookup)
		if err != nil {
			return o, err
		}
		c.manager = &manager{e: e, store: s}
		o.Store = c.manager
		if c.Loras != "" {
			o.Adapters = adapterFolder(c.Loras)
		}
	}
	if o.TLS, err = c.tlsFlags.config(e); err == nil {
		o.Tracer, err = c.tracer(e, &o, c.clusterFlags.Members)
	}
	return o, err
}

// load opens the house, and loads the models of the command line as far as there is room. recorded has each model that
// is loaded record what it does.
func (c *Serve) load(ctx context.Context, e *env.Env, files []models.NamedFile, progress func(done, total int64),
	spans io.Writer, recorded func(*actors.Model)) (l *loader, err error) {
	all, err := named(e, files)
	if err != nil {
		return nil, err
	}
	models, kept := catalogs{all}, (*found)(nil)
	if c.Folder != "" {
		dir, err := folder(c.Folder, e.Now)
		if err != nil {
			return nil, err
		}
		models = append(models, dir)
	}
	if c.Stored {
		if kept, err = stored(e); err != nil {
			return nil, err
		}
		models = append(models, kept)
	}
	if err := c.eventFlags.open(e, kvevents.Options{Log: c.Logger(e)}, all.list(), len(models) > 1); err != nil {
		return nil, err
	}
	adapted := len(c.Lora) > 0 || c.Loras != ""
	if l, err = openLoader(e, &c.Flags, models, c.KeepAlive, spans, c.painter.shared()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if c.manager != nil {
		c.manager.changed = func(name string) {
			kept.forget()
			l.swapper.Changed(name)
		}
	}
	l.progress, l.lora, l.lone = progress, compute.AdapterFlags{Lora: c.Lora}, len(models.list()) == 1
	if l.adapters, err = adapterFolder(c.Loras).paths(); err != nil {
		return nil, fmt.Errorf("--loras: %w", err)
	}
	l.edit = func(m *actors.Model) {
		m.Adapted, m.Sequences = adapted, c.Parallel
		recorded(m)
		c.eventFlags.attach(m)
	}
	for _, name := range all.list() {
		if err := l.swapper.Warm(ctx, name); err != nil {
			return l, err
		}
	}
	return l, nil
}

// prepare opens the folder of cached blocks, pulls missing models, if --pull allows it, and opens the listening socket.
func (c *Serve) prepare(ctx context.Context, e *env.Env, files []models.NamedFile, keys []string) (
	net.Listener, error) {
	if err := c.Keep(e, &c.Flags, c.KVFolder()); err != nil {
		return nil, err
	}
	if err := c.Fetch(ctx, e, paths(files)...); err != nil {
		return nil, err
	}
	return c.listen(e, keys)
}

// listen opens the address, or takes the socket that was passed in, unless strangers can reach it and nothing allows
// that.
func (c *Serve) listen(e *env.Env, keys []string) (net.Listener, error) {
	ln, err := inherited(e, os.Getpid(), firstFile)
	if err != nil {
		return nil, err
	}
	if _, _, malformed := net.SplitHostPort(c.Addr); malformed != nil {
		return nil, env.Usagef("--addr is %q: want HOST:PORT such as 127.0.0.1:8080, or :8080", c.Addr)
	}
	if ln == nil {
		ln, err = net.Listen("tcp", c.Addr)
	}
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the rest of the error only repeats the address
		}
		return nil, fmt.Errorf("--addr %s: %w: choose another, such as 127.0.0.1:8081, or stop what listens there", c.Addr, err)
	}
	if err := c.accessFlags.check(ln.Addr(), keys); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// files returns the models of the command line, if the flags are valid for them.
func (c *Serve) files(e *env.Env) (all []models.NamedFile, err error) {
	if c.KeepAlive < 0 {
		return nil, env.Usagef("--keep-alive is %v: want a time such as 10m, or leave it out", c.KeepAlive)
	}
	if all, err = c.names(); err == nil {
		c.lenders, err = placed(e, all, c.Cluster != "")
	}
	return all, err
}

func (c *Serve) names() ([]models.NamedFile, error) {
	if len(c.Models) == 0 {
		switch {
		case c.Name != "" && c.Folder != "":
			return nil, env.Usagef("--name names one model, and --models is a folder of them: their files have names")
		case c.Name != "" && c.Stored:
			return nil, env.Usagef("--name names one model, and --stored serves all of the store: they have names")
		case c.Folder != "" || c.Stored:
			return nil, nil
		}
		return []models.NamedFile{{Name: c.Name}}, nil
	}
	if len(c.Models) > 1 && c.Name != "" {
		return nil, env.Usagef("--name names one model, and there are %d: name each with -m NAME=FILE", len(c.Models))
	}
	files := make([]models.NamedFile, len(c.Models))
	for i, value := range c.Models {
		m, err := models.ParseNamed(value)
		if err != nil {
			return nil, err
		}
		if c.Name != "" && m.Name != "" {
			return nil, env.Usagef("--name is %q and -m says %q: give the model one name", c.Name, m.Name)
		}
		m.Name = cmp.Or(m.Name, c.Name)
		files[i] = m
	}
	return files, nil
}

// paths are the paths of the models.
func paths(files []models.NamedFile) (all []string) {
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

// announce prints the URL, and for a person what to do with it.
func (c *Serve) announce(e *env.Env, l *loader, addr net.Addr, keyed bool) error {
	var names []string
	for _, name := range l.Names() {
		engine := l.swapper.Engine(name)
		if engine != nil && engine.Info.TemplateNote != "" && !engine.Embeds() {
			fmt.Fprintln(e.Stderr, "sluice: "+engine.Info.TemplateNote)
		}
		names = append(names, env.Printable(name))
	}
	if len(names) == 0 {
		names = []string{"models that are still to come"}
	}
	url := "http://" + reachable(addr)
	if c.Cert != "" {
		url = "https://" + reachable(addr)
	}
	notify(e, fmt.Sprintf("READY=1\nSTATUS=%s serves %s", url, strings.Join(names, ", ")))
	if _, err := fmt.Fprintf(e.Stdout, "%s serves %s\n", url, strings.Join(names, ", ")); err != nil {
		return fmt.Errorf("writing the URL: %w", err)
	}
	if !e.IsTerminal(e.Stdout) {
		return nil
	}
	key := ""
	if keyed {
		key = "\n  -H 'Authorization: Bearer KEY' \\"
	}
	chosen := ""
	if len(names) > 1 {
		chosen = fmt.Sprintf(`"model": %q, `, names[0])
	}
	p := e.Pane(e.Stdout)
	_, err := fmt.Fprintln(p.W, p.Dimmed(fmt.Sprintf(`Ctrl-C stops it. To try it, open it in a browser, or:
curl %s/v1/chat/completions \%s
  -d '{%s"messages": [{"role": "user", "content": "What is the capital of France?"}]}'`, url, key, chosen)))
	return err
}

// reachable is an address as a client on this machine writes it.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}

// stop lets open answers finish, until patience or another Ctrl-C ends.
func (c *Serve) stop(e *env.Env, s *server.Server) error {
	ctx, _, cancel := e.Serving(context.Background())
	defer cancel()
	notify(e, "STOPPING=1")
	fmt.Fprintln(e.Stderr, "sluice: stopping when open answers are finished; Ctrl-C again cuts them")
	ctx, cancel = context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(e.Stderr, "sluice: answers that were not finished after %v were cut\n", patience)
		return nil
	}
	return err
}
