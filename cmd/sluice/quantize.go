package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"syscall"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
	"github.com/sluice-ai/sluice/storage/requant"
)

type quantizeCmd struct {
	In         string   `arg:"" help:"Model to read: a GGUF file in BF16, F16 or F32, or the name of a model in the store."`
	Out        string   `arg:"" help:"File to write. It appears when it is complete; a run that was stopped goes on where it was."`
	Type       string   `arg:"" help:"File type, such as Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0 or IQ4_XS. A wrong one lists all."`
	Imatrix    string   `name:"imatrix" placeholder:"FILE" help:"Importance matrix (sluice imatrix makes one): columns with large inputs are rounded more carefully."`
	TensorType []string `name:"tensor-type" sep:"none" placeholder:"PATTERN=TYPE" help:"Type of the tensors whose names match a regular expression. May be repeated; the first that matches counts. Norms and other small ones stay; rows that do not fill a type's blocks get the nearest that they fill."`
	OutputType string   `name:"output-type" placeholder:"TYPE" help:"Type of the output matrix."`
	EmbdType   string   `name:"embd-type" placeholder:"TYPE" help:"Type of the token embeddings."`
	LeaveOut   bool     `name:"leave-output" help:"Leave the output matrix as it is, unless the embeddings serve as one."`
	Pure       bool     `help:"One type for all matrices, without more bits for some."`
	Requantize bool     `name:"allow-requantize" help:"Read quantised models too. Errors add up: the original is the better source."`
	forceFlag
	DryRun  bool `name:"dry-run" help:"Show which type each tensor gets and how large the file becomes, and write nothing."`
	Threads int  `short:"t" placeholder:"N" help:"Threads that compute. Default: one for each core."`
}

func (quantizeCmd) Examples() [2]string {
	return [2]string{
		`sluice quantize model-bf16.gguf model-Q4_K_M.gguf Q4_K_M`,
		`sluice quantize --dry-run --tensor-type 'ffn_down=Q8_0' model-bf16.gguf out.gguf Q4_K_M`,
	}
}

func (c *quantizeCmd) Run(e *env) error {
	recipe, options, err := c.recipe()
	if err != nil {
		return err
	}
	file, err := openModel(e, c.In)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := c.notItself(file); err != nil {
		return err
	}
	q := &quantization{file: file, recipe: recipe}
	if c.Imatrix != "" {
		if q.matrix, err = imatrix.Read(c.Imatrix); err != nil {
			return err
		}
		options.Importance = true
	}
	if err := q.plan(options, c.Requantize); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	if c.DryRun {
		return q.print(e.stdout)
	}
	if err := q.missing(); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	if err := safefile.Free(c.Out); errors.Is(err, safefile.ErrTaken) && !c.Force {
		if err := e.mayReplace(c.Out); err != nil {
			return err
		}
		c.Force = true
	}
	return c.write(e, q)
}

// recipe reads the flags that say what types to use.
func (c *quantizeCmd) recipe() (*ftype.Type, ftype.Options, error) {
	o := ftype.Options{Pure: c.Pure, LeaveOutput: c.LeaveOut}
	recipe, ok := ftype.Find(c.Type)
	if !ok {
		return nil, o, usagef("%q is no file type: want one of %s", c.Type, strings.Join(ftype.Names(), ", "))
	}
	if err := within("-t", c.Threads, 0, maxThreads); err != nil {
		return nil, o, err
	}
	if c.LeaveOut && c.OutputType != "" {
		return nil, o, usagef("--leave-output and --output-type contradict each other: leave one out")
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
			return nil, o, usagef("--tensor-type is %q: want PATTERN=TYPE, such as ffn_down=Q8_0", text)
		}
		t, err := parseType("--tensor-type", name)
		if err != nil {
			return nil, o, err
		}
		expr, err := regexp.Compile(pattern)
		if err != nil {
			return nil, o, usagef("--tensor-type: %v", err)
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
		return 0, usagef("%s: %q is no type of a tensor that can be written: want one such as Q8_0 or Q4_K", flag, name)
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

// notItself refuses to write over what is read.
func (c *quantizeCmd) notItself(f *gguf.File) error {
	read := []string{c.Imatrix}
	for i := range f.Parts() {
		read = append(read, f.Part(i).Path)
	}
	return cmp.Or(notOver(c.Out, read...), notOver(c.Out+requant.Suffix, read...), c.fits())
}

// fits refuses names of what is no file: it could not be written bit by bit and taken up again.
func (c *quantizeCmd) fits() error {
	if err := safefile.Free(c.Out); !errors.Is(err, safefile.ErrTaken) {
		return unfit(c.Out, err)
	}
	return nil
}

// write does the work, and says what came of it.
func (c *quantizeCmd) write(e *env, q *quantization) error {
	job := requant.Job{
		Source: q.file, Meta: q.keys, Tensors: q.layout.Tensors, Importance: q.importance(),
		Threads: cmp.Or(c.Threads, runtime.GOMAXPROCS(0)), Replace: c.Force,
	}
	began := e.now()
	resumed, err := c.work(e, &job)
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.ENOSPC) {
		fmt.Fprintf(e.stderr, "%s holds what is done so far: the same command goes on from there\n",
			printable(c.Out+requant.Suffix))
	}
	if err != nil {
		return err
	}
	if resumed > 0 {
		fmt.Fprintf(e.stdout, "%s of it were there from an earlier run\n", binarySize(resumed))
	}
	if n := len(q.changed()) - len(job.Importance); q.matrix != nil && n > 0 {
		fmt.Fprintf(e.stdout, "%s had no importance of their own\n", count(n, "tensor"))
	}
	if note := q.larger(); note != "" {
		fmt.Fprintln(e.stderr, "sluice: "+note)
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %s\ntook %.1f s on %s\n", printable(c.Out), q.sizes(),
		e.now().Sub(began).Seconds(), count(job.Threads, "thread"))
	return err
}

// work runs a job, until Ctrl-C. The bar is gone when it returns.
func (c *quantizeCmd) work(e *env, job *requant.Job) (resumed int64, err error) {
	ctx, cancel := e.interruptible(context.Background())
	defer cancel()
	bar := e.progress("writing " + printable(c.Out))
	defer bar.clear()
	job.Progress = bar.show
	return job.Run(ctx, c.Out)
}
