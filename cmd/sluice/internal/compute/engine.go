package compute

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/kvfiles"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// EngineFlags are the flags that all commands which run one model share.
type EngineFlags struct {
	models.Flag
	AdapterFlags
	Flags
}

// Flags say how models are run.
// Wide: a person may say so much of it.
type Flags struct {
	CacheFlags
	Ctx         int      `name:"ctx" placeholder:"N" help:"Tokens that one conversation may hold. Default: what a measurement needs, else what the model was trained for, as memory allows."`
	RAM         env.Size `name:"ram" placeholder:"SIZE" help:"Memory for weights, such as 6G or 800M (powers of 1024); what does not fit is streamed from the file. Default: all of them, if they fit this machine."`
	VRAM        env.Size `name:"vram" placeholder:"SIZE" help:"Memory of the GPU for weights, of each if there are several, such as 6G; what does not fit waits in this machine's memory, as far as --ram goes, and is copied when it is needed. Default: all of them, if they fit."`
	Mirror      string   `name:"mirror" placeholder:"DIR" help:"Folder with a copy of the model, on another drive, or member://MEMBER/MODEL, which a member of the cluster runs: weights that are read come from both, as fast as each can."`
	Device      string   `placeholder:"NAME" help:"Where models are computed: cpu, cuda, cuda:N, vulkan, vulkan:N (sluice doctor lists them), cuda:N,M or vulkan:N,M, several cards of which each computes some layers, cuda:N+M, cards that compute each layer together (llama.cpp: --split-mode row), auto, a GPU where there is one, or member:HOST:PORT,..., other members of the cluster beside this machine's processor, for a model that is too large for one (it needs --pass). Default: $SLUICE_DEVICE, else a GPU with memory of its own, of which the plan chooses the layers, else cpu."`
	Pass        string   `name:"pass" table:"cluster" placeholder:"FILE" help:"Pass of this member of a cluster, which sluice cluster cert made."`
	GPULayers   layers   `name:"gpu-layers" placeholder:"N" default:"all" help:"Layers that a GPU computes, the last ones, with the head; this machine's processor computes the others, from its own memory. 0: the GPU computes none. all (the default): what does not fit is copied there for each token. auto: either, or as with --cpu-experts, whichever is predicted to be sooner."`
	CPUExperts  int      `name:"cpu-experts" placeholder:"N" help:"Layers whose experts this machine's processor computes, from its own memory, while a GPU computes all else: the first ones that have any. Default: 0, what does not fit is copied there for each token."`
	MMProj      string   `name:"mmproj" placeholder:"FILE" help:"How the model sees: the mmproj file (GGUF) that belongs to it. Default: what is in the model's folder, or such a file beside the only model of a folder."`
	Speculate   string   `name:"speculate" enum:"auto,ngram,draft,mtp,off" default:"auto" help:"Guess tokens of an answer, as many as make it faster; the answer is the same. ngram: from what it and its prompt say, or the client expects. draft: by --draft alone. mtp: by the head in the model's file that predicts tokens further on, alone. auto: by all means that there are, but by a head only without --draft and where memory has room, and not where speed is measured (bench) without --draft. Default: auto."`
	Draft       string   `name:"draft" placeholder:"MODEL" help:"A smaller model with the same vocabulary, or a head of EAGLE-3 that was trained for the model, named as -m is: it guesses tokens of answers. It takes part of --ram and --vram. Where several models are served it guesses for those that it fits. Default: none."`
	FastPrefill bool     `help:"On a GPU, read prompts in half precision, as those of F16 files are anyway: faster, but a little less exact, and earlier answers in a prompt are read anew."`
	Threads     int      `short:"t" placeholder:"N" help:"Threads that compute. Default: one for each core."`
	NoRepack    bool     `name:"no-repack" help:"Compute from the mapped file, without a copy of the weights in memory: starts at once, answers slower."`
	Log         string   `name:"log" placeholder:"LEVEL" enum:",debug,info,warn,error" default:"" help:"Log to standard error from this level on: debug, info, warn, error."`
	LogFormat   string   `name:"log-format" enum:"text,json" default:"text" help:"What lines of the log are: text, or json."`

	kept       *kvfiles.Folder // of cached blocks; nil: there is none
	stateKey   *sealed.Key     // encrypts what is kept; nil: nothing is
	identified bool            // models know which they are: something of them is saved
	far        Far             // nil: no other machine is asked for files
}

// Far brings files of models from other machines.
type Far interface {
	// Open opens a model that is to be brought to path; nil: none is.
	Open(e *env.Env, path string) (*gguf.File, error)
	// Copies are the parts of the model at an address, and its content.
	Copies(address string) (copies []source.Source, content string, err error)
}

// Reach has models come from other machines.
func (f *Flags) Reach(far Far) { f.far = far }

// Check refuses flags with impossible values or combinations.
func (f *Flags) Check() error {
	if f.RAM > 0 && f.NoRepack {
		return env.Usagef("--ram bounds the memory for weights, and with --no-repack they take none: leave one out")
	}
	switch {
	case f.Speculate == "draft" && f.Draft == "":
		return env.Usagef("--speculate draft needs a model that guesses: give --draft MODEL")
	case f.Draft != "" && f.Speculate != "draft" && f.Speculate != "auto":
		return env.Usagef("--draft guesses tokens, and --speculate %s has no use for it: leave one out", f.Speculate)
	}
	if f.CPUExperts > 0 && f.GPULayers != allLayers {
		return env.Usagef("--gpu-layers and --cpu-experts both say what the processor computes: give one of them")
	}
	return cmp.Or(f.check(), env.Within("--ctx", f.Ctx, 0, env.MaxTokens), env.Within("-t", f.Threads, 0, env.MaxThreads),
		env.Within("--cpu-experts", f.CPUExperts, 0, env.MaxTokens))
}

// Start loads the model, with a progress bar if a person is watching. edit may change what the flags do not say.
func (f *EngineFlags) Start(ctx context.Context, e *env.Env, edit func(*actors.Config)) (*actors.Engine, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	own, unread := namedmodel.AdaptersOf(e.Lookup, f.Model)
	began := e.Now()
	file, device, err := f.openBoth(e, f.Model)
	if err != nil {
		return nil, err
	}
	model, err := f.ModelOn(e, "", file, device)
	if err != nil {
		return nil, errors.Join(err, file.Close(), device.Close())
	}
	if unread != nil {
		return nil, errors.Join(unread, model.Close(), device.Close())
	}
	model.Adapted, model.Own = len(f.Lora) > 0, ownAdapters(own, &model)
	one := actors.Config{Model: model, Device: device}
	if edit != nil {
		edit(&one)
	}
	house, err := actors.Open(ctx, actors.HouseConfig{Log: f.Logger(e), Device: one.Device, Trace: one.Trace})
	if err != nil {
		return nil, errors.Join(err, one.Model.Close())
	}
	engine, err := f.enter(ctx, e, house, &one, began)
	if err == nil {
		err = f.AddTo(engine, true)
	}
	if err != nil {
		_ = house.Close(ctx) // nothing runs there, and the first error says more
	}
	return engine, err
}

// Enter loads a model into a house whose device is known, with a progress bar if a person is watching. edit may change
// what the flags do not say.
func (f *Flags) Enter(ctx context.Context, e *env.Env, h *actors.House, d backend.Device, m models.NamedFile,
	edit func(*actors.Model)) (*actors.Engine, error) {
	began := e.Now()
	file, err := f.OpenWeights(e, m.Path)
	if err != nil {
		return nil, err
	}
	model, err := f.ModelOn(e, m.Name, file, d)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	own, err := namedmodel.AdaptersOf(e.Lookup, m.Path)
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	model.Own = ownAdapters(own, &model)
	one := actors.Config{Model: model, Device: d}
	edit(&one.Model)
	return f.enter(ctx, e, h, &one, began)
}

// ModelOn is ModelOf with the draft model that the flags name, and with the speeds of a device, which is measured only
// if they are asked for.
func (f *Flags) ModelOn(e *env.Env, name string, file *gguf.File, d backend.Device) (actors.Model, error) {
	m, note, err := f.ModelOf(e, name, file)
	m.Speeds = SpeedsOf(e, file, d)
	if note != "" {
		fmt.Fprintf(e.Stderr, "sluice: --kv %s: %s\n", f.KV, note)
	}
	if err == nil {
		err = f.AddDraft(e, &m, false)
	}
	if err == nil {
		err = f.AddTower(e, &m, true)
	}
	if err != nil && m.Draft != nil {
		err = errors.Join(err, m.Draft.Close())
		m.Draft = nil
	}
	return m, err
}

// ModelOf is the actors' description of a model in a file, with the settings of the flags, and a note for the user of
// what they could not ask for.
func (f *Flags) ModelOf(e *env.Env, name string, file *gguf.File) (m actors.Model, note string, err error) {
	kv, note, err := f.Formats(e, file)
	m = actors.Model{Name: name, File: file, KV: kv, KVHost: int64(f.KVHost), Context: f.context(file),
		NoRepack: f.NoRepack, Weights: int64(f.RAM), VRAM: int64(f.VRAM), Layers: f.GPULayers.Planned(),
		Experts: f.CPUExperts, Speculate: f.Speculate != "off"}
	if err == nil {
		err = f.keep(&m)
	}
	return m, note, err
}

// context is the length of contexts that the flags, or the file's own settings, ask for; 0: neither does.
func (f *Flags) context(file *gguf.File) int {
	return cmp.Or(f.Ctx, modelfile.Of(&file.Meta).Context)
}

// HeaderOf describes a model that is not loaded. Types of its caches are not chosen for that.
func (f *Flags) HeaderOf(name string, file *gguf.File) (*actors.Header, error) {
	return actors.HeaderOf(&actors.Model{Name: name, File: file, KV: backend.KVF16, Context: f.context(file)})
}

// AddDraft opens the draft model that the flags name, if they do, for a model whose file is open, or has the head in
// that file guess. With ifFits, a model of another vocabulary runs without, as one without a head does; else entering
// it is an error.
func (f *Flags) AddDraft(e *env.Env, m *actors.Model, ifFits bool) (err error) {
	if f.Draft == "" {
		return f.addHead(m, ifFits)
	}
	if m.Draft, err = namedmodel.OpenWeights(e.Lookup, f.Draft); err != nil {
		return fmt.Errorf("--draft: %w", err)
	}
	m.DraftOnly = f.Speculate == "draft"
	if !ifFits {
		return nil
	}
	if err := actors.Fits(m.File, m.Draft); err != nil {
		log := f.Logger(e)
		log.Warn().Err(err).Msg("it runs without --draft")
		err := m.Draft.Close()
		m.Draft, m.DraftOnly = nil, false
		return err
	}
	return nil
}

// addHead has the head of a model's file guess tokens, if the flags allow it.
func (f *Flags) addHead(m *actors.Model, ifFits bool) error {
	only := f.Speculate == "mtp"
	switch {
	case !only && f.Speculate != "auto":
	case actors.HasHead(m.File):
		m.Draft, m.Heads, m.HeadsIfFit, m.DraftOnly = m.File.Share(), true, !only, only
	case only && !ifFits:
		return env.Usagef("--speculate mtp: %s has no head that predicts tokens further on (nextn tensors): "+
			"convert its folder again if that has one, or leave the flag out", m.File.Name)
	}
	return nil
}

// enter loads a model, whose file is open, into a house.
func (f *Flags) enter(ctx context.Context, e *env.Env, h *actors.House, c *actors.Config, began time.Time) (
	*actors.Engine, error) {
	opened, log, file := e.Now(), f.Logger(e), c.File
	log.Debug().Str("file", file.Name).Int("parts", file.Parts()).Int("tensors", len(file.Tensors)).Msg("opened")
	bar := e.Progress("loading " + env.Printable(file.Name))
	defer bar.Clear()
	told := c.Progress
	c.Progress = func(done, total int64) {
		if bar.Show(done, total); told != nil {
			told(done, total)
		}
	}
	engine, err := h.Enter(ctx, c.Model)
	if err != nil {
		return nil, err
	}
	f.summarize(e, log, c.Device, engine, e.Now().Sub(began))
	logLoading(log, engine, began, opened, e.Now())
	f.warn(e, engine)
	announce(e, engine, file, c.Device)
	return engine, nil
}

// openBoth opens a model and its device concurrently: each takes tenths of a second.
func (f *Flags) openBoth(e *env.Env, path string) (file *gguf.File, device backend.Device, err error) {
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() { file, unread = f.OpenWeights(e, path) })
	device, err = f.OpenDevice(e)
	reading.Wait()
	switch {
	case err != nil && unread == nil:
		err = errors.Join(err, file.Close())
	case err == nil && unread != nil:
		err = errors.Join(unread, device.Close())
	}
	return file, device, err
}

// logLoading logs when each stage of loading was reached, in milliseconds since loading began.
func logLoading(log zerolog.Logger, engine *actors.Engine, began, opened, ready time.Time) {
	line, at := log.Debug().Dur("opened_ms", opened.Sub(began)), engine.Loading()
	for _, stage := range []struct {
		name string
		at   time.Time
	}{{"laid_ms", at.Laid}, {"first_read_ms", at.Asked}, {"last_read_ms", at.Read}, {"home_ms", at.Home}} {
		if !stage.at.IsZero() {
			line = line.Dur(stage.name, stage.at.Sub(began))
		}
	}
	done, _ := engine.Loaded()
	line.Dur("ready_ms", ready.Sub(began)).Int64("bytes", done).Msg("loaded")
}

// summarize says in one line of the log what a model runs with.
func (f *Flags) summarize(e *env.Env, log zerolog.Logger, d backend.Device, engine *actors.Engine, took time.Duration) {
	info, blocks := &engine.Info, engine.Snapshot().KV
	_, weights := engine.Loaded()
	cache := int64(blocks.Free+blocks.Cached+blocks.Used) * backend.BlockSize * info.KV.Bytes
	log.Info().Str("model", info.Name).Str("architecture", info.Architecture).
		Str("parameters", env.Parameters(info.Parameters)).Int("context", info.Context).Str("kv", info.KV.Type).
		Int("threads", cmp.Or(f.Threads, runtime.NumCPU())).Str("kernels", d.Name()).
		Str("weights", env.BinarySize(weights)).Str("cache", env.BinarySize(cache)).Str("memory", env.BinarySize(PeakMemory(e.Root))).
		Dur("ms", took).Msg("ready")
}

// warn prints a warning if the context is longer than the trained one, or the model's tower is not used.
func (f *Flags) warn(e *env.Env, engine *actors.Engine) {
	if why := engine.Info.Blind; why != "" {
		runsBlind(e, why)
	}
	if f.Ctx > engine.Info.Trained {
		fmt.Fprintf(e.Stderr, "sluice: --ctx is %d, but %s was trained for %d tokens: expect worse answers beyond\n",
			f.Ctx, env.Printable(engine.Info.Name), engine.Info.Trained)
	}
}

// announce prints a line if weights stream, with the speed that the plan expects.
func announce(e *env.Env, engine *actors.Engine, file *gguf.File, d backend.Device) {
	plan := engine.Plan()
	own, host := plan.Beyond().Weights, plan.Host().Weights
	missing := backend.Missing(d.Traits().Devices, engine.Info.Program.Program)
	switch {
	case missing != nil:
		fmt.Fprintf(e.Stderr, "sluice: the processor computes %s: %v\n", env.Printable(engine.Info.Name), missing)
	case plan.Divided():
		where, n := "the GPU", len(cards(d))
		switch away := d.Traits().Away; {
		case away:
			where = env.Count(n, "other member")
		case n > 1:
			where = env.Count(n, "GPU")
		}
		fmt.Fprintf(e.Stderr, "sluice: %s is divided: %s of %s are on %s, %s in memory\n", env.Printable(engine.Info.Name),
			env.BinarySize(own), env.BinarySize(engine.Info.WeightBytes), where, env.BinarySize(host))
	}
	if !plan.Streams() {
		return
	}
	measured, err := Recall(e, file.Part(0), d)
	if err != nil {
		fmt.Fprintf(e.Stderr, "sluice: %s: %v\n", env.Printable(engine.Info.Name), err)
	}
	x := plan.Expect(engine.Info.Program, measured.Planned(d), 1, 0)
	where, come := "in memory", env.BinarySize(int64(x.Streamed))+" are read"
	there := own
	if plan.Divided() || !plan.Apart() {
		there += host
	}
	if x.Copied > 0 {
		where, come = "on the GPU", env.BinarySize(int64(x.Copied))+" are copied there"
		if x.Streamed > 0 {
			come += fmt.Sprintf(" (%s of them from disk)", env.BinarySize(int64(x.Streamed)))
		}
	}
	expect := env.TokensRate(x.Decode) + " tokens/s"
	if x.First > 0 {
		expect += fmt.Sprintf(" in the long run, %s in the first %d tokens", env.TokensRate(x.First), place.FirstTokens)
	}
	fmt.Fprintf(e.Stderr, "sluice: %s streams: %s of %s are %s, %s for each token; expect %s\n",
		env.Printable(engine.Info.Name), env.BinarySize(there), env.BinarySize(engine.Info.WeightBytes), where, come, expect)
}

// unreadable is the error of a file that is no model that can be run. Clients learn nothing of its content.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// Told implements wire.Private.
func (unreadable) Told() string { return "its file is no model that can be run: the log says why" }

// OpenWeights opens a model that can be run, with its copy of --mirror.
func (f *Flags) OpenWeights(e *env.Env, value string) (*gguf.File, error) {
	if f.far != nil {
		if file, err := f.far.Open(e, value); file != nil || err != nil {
			return file, err
		}
	}
	file, err := namedmodel.OpenWeights(e.Lookup, value)
	return f.mirrored(e, file, err)
}

// OpenPlanned is OpenWeights of a model that is not run: it may be an outline.
func (f *Flags) OpenPlanned(e *env.Env, value string) (*gguf.File, error) {
	file, err := namedmodel.OpenPlanned(e.Lookup, value)
	return f.mirrored(e, file, err)
}

func (f *Flags) mirrored(e *env.Env, file *gguf.File, err error) (*gguf.File, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // it was not looked at
		return nil, err
	case err != nil:
		return nil, unreadable{err}
	}
	switch {
	case f.Mirror == "":
		return file, nil
	case strings.HasPrefix(f.Mirror, Member):
		if err := f.mirrorAfar(e, file); err != nil {
			return nil, errors.Join(fmt.Errorf("--mirror: %w", err), file.Close())
		}
		return file, nil
	}
	if err := file.Mirror(f.Mirror); err != nil {
		return nil, errors.Join(fmt.Errorf("--mirror: %w", err), file.Close())
	}
	return file, nil
}

// Member begins the address of a model that a member of the cluster runs.
const Member = "member://"

// mirrorAfar has the weights come from another machine too, unless that cannot be asked.
func (f *Flags) mirrorAfar(e *env.Env, file *gguf.File) error {
	if f.far == nil {
		return env.Usagef("%s is a model of a member of a cluster: that needs sluice serve --cluster", f.Mirror)
	}
	copies, content, err := f.far.Copies(f.Mirror)
	if err != nil {
		log := f.Logger(e)
		log.Warn().Err(err).Msg("weights come from the file alone")
		return nil
	}
	own, err := ContentOf(file)
	if err != nil {
		return err
	}
	if own != content {
		return fmt.Errorf("%s is another model: its content is %s, and that of %s is %s", f.Mirror, content, file.Name, own)
	}
	return file.MirrorAt(copies)
}

// Logger returns the engine's log: readable text on standard error, only errors unless --log says otherwise.
func (f *Flags) Logger(e *env.Env) zerolog.Logger {
	level := zerolog.ErrorLevel
	if f.Log != "" {
		level, _ = zerolog.ParseLevel(f.Log) // kong has checked it
	}
	out := e.Stderr
	if f.LogFormat != "json" {
		out = zerolog.ConsoleWriter{Out: e.Stderr, TimeFormat: time.DateTime, NoColor: !e.Pane(e.Stderr).ANSI}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

// Shut closes the engine at the end of a command, when no request is open.
func Shut(e *actors.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.Close(ctx)
}

// PeakMemory is the largest resident size of this process so far, in bytes; 0 where the system does not say.
func PeakMemory(root fs.FS) int64 {
	f, err := root.Open("proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
