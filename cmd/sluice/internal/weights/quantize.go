package weights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
	"github.com/sluice-ai/sluice/storage/requant"
)

type Quantize struct {
	In         string   `arg:"" help:"Model to read: a GGUF file in BF16, F16 or F32, the folder of a model, or the name of one in the store."`
	Out        string   `arg:"" help:"File to write. It appears when it is complete; a run that was stopped goes on where it was."`
	Type       string   `arg:"" help:"File type, such as Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or IQ4_XS. A wrong one lists all."`
	Imatrix    string   `name:"imatrix" placeholder:"FILE" help:"Importance matrix (sluice imatrix makes one): columns with large inputs are rounded more carefully."`
	TensorType []string `name:"tensor-type" sep:"none" placeholder:"PATTERN=TYPE" help:"Type of the tensors whose names match a regular expression. May be repeated; the first that matches counts. Norms and other small ones stay; rows that do not fill a type's blocks get the nearest that they fill."`
	OutputType string   `name:"output-type" placeholder:"TYPE" help:"Type of the output matrix."`
	EmbdType   string   `name:"embd-type" placeholder:"TYPE" help:"Type of the token embeddings."`
	LeaveOut   bool     `name:"leave-output" help:"Leave the output matrix as it is, unless the embeddings serve as one."`
	Pure       bool     `help:"One type for all matrices, without more bits for some."`
	Requantize bool     `name:"allow-requantize" help:"Read quantised models too. Errors add up: the original is the better source."`
	env.ForceFlag
	DryRun  bool `name:"dry-run" help:"Show which type each tensor gets and how large the file becomes, and write nothing."`
	Threads int  `short:"t" placeholder:"N" help:"Threads that compute. Default: one for each core."`
}

func (Quantize) Examples() [2]string {
	return [2]string{
		`sluice quantize model-bf16.gguf model-Q4_K_M.gguf Q4_K_M`,
		`sluice quantize --dry-run --tensor-type 'ffn_down=Q8_0' model-bf16.gguf out.gguf Q4_K_M`,
	}
}

func (c *Quantize) Run(e *env.Env) error {
	recipe, options, err := c.recipe()
	if err != nil {
		return err
	}
	file, err := namedmodel.Open(e.Lookup, c.In)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := c.notItself(file); err != nil {
		return err
	}
	q := &models.Quantization{File: file, Recipe: recipe}
	if c.Imatrix != "" {
		if q.Matrix, err = imatrix.Read(c.Imatrix); err != nil {
			return err
		}
		options.Importance = true
	}
	if err := q.Plan(options, c.Requantize); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	if c.DryRun {
		return q.Print(e.Stdout)
	}
	if err := q.Missing(); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	if err := safefile.Free(c.Out); errors.Is(err, safefile.ErrTaken) && !c.Force {
		if err := e.MayReplace(c.Out); err != nil {
			return err
		}
		c.Force = true
	}
	return c.write(e, q)
}

// recipe reads the flags that say what types to use.
func (c *Quantize) recipe() (*ftype.Type, ftype.Options, error) {
	o := ftype.Options{Pure: c.Pure, LeaveOutput: c.LeaveOut}
	recipe, ok := ftype.Find(c.Type)
	if !ok {
		return nil, o, env.Usagef("%q is no file type: want one of %s", c.Type, strings.Join(ftype.Names(), ", "))
	}
	if err := env.Within("-t", c.Threads, 0, env.MaxThreads); err != nil {
		return nil, o, err
	}
	if c.LeaveOut && c.OutputType != "" {
		return nil, o, env.Usagef("--leave-output and --output-type contradict each other: leave one out")
	}
	var err error
	if o.Output, err = optionalType("--output-type", c.OutputType); err != nil {
		return nil, o, err
	}
	if o.Embed, err = optionalType("--embd-type", c.EmbdType); err != nil {
		return nil, o, err
	}
	for _, text := range c.TensorType {
		pattern, name, ok := cutLast(text, "=")
		if !ok {
			return nil, o, env.Usagef("--tensor-type is %q: want PATTERN=TYPE, such as ffn_down=Q8_0", text)
		}
		t, err := parseType("--tensor-type", name)
		if err != nil {
			return nil, o, err
		}
		expr, err := regexp.Compile(pattern)
		if err != nil {
			return nil, o, env.Usagef("--tensor-type: %v", err)
		}
		o.Overrides = append(o.Overrides, ftype.Override{Pattern: expr, Type: t})
	}
	return recipe, o, nil
}

// optionalType reads the value of a flag that may be left out.
func optionalType(flag, name string) (*quant.Type, error) {
	if name == "" {
		return nil, nil
	}
	t, err := parseType(flag, name)
	return &t, err
}

// parseType reads the type of a tensor, which must be one that can be written.
func parseType(flag, name string) (quant.Type, error) {
	t, ok := quant.Parse(name)
	if !ok || !quant.HasEncoder(t) {
		return 0, env.Usagef("%s: %q is no type of a tensor that can be written: want one such as Q8_0 or Q4_K", flag, name)
	}
	return t, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// notItself refuses to overwrite a file that is read.
func (c *Quantize) notItself(f *gguf.File) error {
	read := []string{c.Imatrix}
	for i := range f.Parts() {
		read = append(read, f.Part(i).Path)
	}
	return cmp.Or(env.NotOver(c.Out, read...), env.NotOver(c.Out+requant.Suffix, read...), c.fits())
}

// fits refuses output paths that are no regular files: such output could not be resumed.
func (c *Quantize) fits() error {
	if err := safefile.Free(c.Out); !errors.Is(err, safefile.ErrTaken) {
		return env.Unfit(c.Out, err)
	}
	return nil
}

// write quantises the model, and prints a summary.
func (c *Quantize) write(e *env.Env, q *models.Quantization) error {
	job := requant.Job{
		Source: q.File, Meta: q.Keys, Tensors: q.Layout.Tensors, Importance: q.Importance(),
		Threads: cmp.Or(c.Threads, runtime.GOMAXPROCS(0)), Replace: c.Force,
	}
	began := e.Now()
	resumed, err := c.work(e, &job)
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.ENOSPC) {
		fmt.Fprintf(e.Stderr, "%s holds what is done so far: the same command goes on from there\n",
			env.Printable(c.Out+requant.Suffix))
	}
	if err != nil {
		return err
	}
	if resumed > 0 {
		fmt.Fprintf(e.Stdout, "%s of it were there from an earlier run\n", env.BinarySize(resumed))
	}
	if n := len(q.Changed()) - len(job.Importance); q.Matrix != nil && n > 0 {
		fmt.Fprintf(e.Stdout, "%s had no importance of their own\n", env.Count(n, "tensor"))
	}
	if note := q.Larger(); note != "" {
		fmt.Fprintln(e.Stderr, "sluice: "+note)
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %s\ntook %.1f s on %s\n", env.Printable(c.Out), q.Sizes(),
		e.Now().Sub(began).Seconds(), env.Count(job.Threads, "thread"))
	return err
}

// work runs a job until it ends or Ctrl-C. It erases the bar before it returns.
func (c *Quantize) work(e *env.Env, job *requant.Job) (resumed int64, err error) {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	bar := e.Progress("writing " + env.Printable(c.Out))
	defer bar.Clear()
	job.Progress = bar.Show
	return job.Run(ctx, c.Out)
}
