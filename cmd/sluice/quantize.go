package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
	"github.com/sluice-ai/sluice/storage/requant"
)

type quantizeCmd struct {
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
	forceFlag
	DryRun  bool `name:"dry-run" help:"Show which type each tensor gets and how large the file becomes, and write nothing."`
	Threads int  `short:"t" placeholder:"N" help:"Threads that compute. Default: one for each core."`
}

func (quantizeCmd) examples() [2]string {
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
	file, err := e.openModel(c.In)
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

// quantization is a model with the types that its tensors will have.
type quantization struct {
	file   *gguf.File
	recipe *ftype.Type
	matrix *imatrix.Matrix // nil without one
	layout *gguf.Layout    // of the new file
	keys   *meta.Map
}

// plan finds the types, and reports what cannot be done.
func (q *quantization) plan(o ftype.Options, requantize bool) error {
	tensors := make([]ftype.Tensor, len(q.file.Tensors))
	names := make([]string, len(tensors))
	for i, t := range q.file.Tensors {
		tensors[i], names[i] = ftype.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}, t.Name
	}
	types, err := q.recipe.Types(&q.file.Meta, tensors, o)
	if err != nil {
		return err
	}
	var list []gguf.Tensor
	for _, i := range ftype.Order(names) {
		from, to := tensors[i], types[i]
		if from.Type != to && from.Type.Block() > 1 && !requantize {
			return fmt.Errorf("tensor %q: is quantised already, as %s: start from a file in BF16 or F16, "+
				"or add --allow-requantize", from.Name, from.Type)
		}
		list = append(list, gguf.Tensor{Name: from.Name, Type: to, Shape: from.Shape})
	}
	q.keys = q.recipe.Meta(&q.file.Meta)
	if q.matrix != nil {
		q.keys.Set("quantize.imatrix.entries_count", uint32(len(q.matrix.Entries)))
		q.keys.Set("quantize.imatrix.chunks_count", uint32(q.matrix.Chunks))
	}
	q.layout, err = gguf.Plan(q.keys, list)
	return err
}

// missing says what the plan lacks to be carried out: a matrix of this model, an encoder, or the importance of a tensor
// that would be useless without it.
func (q *quantization) missing() error {
	if q.matrix != nil && !slices.ContainsFunc(q.layout.Tensors, func(t gguf.Tensor) bool {
		_, ok := q.matrix.Entries[t.Name]
		return ok
	}) {
		return errors.New("the importance matrix has none of its tensors: make one of this model with sluice imatrix")
	}
	for _, t := range q.changed() {
		if !quant.HasEncoder(t.Type) {
			return fmt.Errorf("tensor %q: would be %s, which cannot be written yet: choose another file type",
				t.Name, t.Type)
		}
		if !q.recipe.NeedsImportance(t.Name, t.Type) {
			continue
		}
		if q.matrix == nil {
			return fmt.Errorf("tensor %q: so few bits as in %s need an importance matrix: make one with "+
				"sluice imatrix, and give it with --imatrix", t.Name, t.Type)
		}
		if _, ok := q.matrix.Entries[t.Name]; !ok {
			return fmt.Errorf("tensor %q: so few bits as in %s need its importance, which the matrix does not have: "+
				"make one of this model", t.Name, t.Type)
		}
	}
	return nil
}

// changed lists the tensors of the new file whose type is another one.
func (q *quantization) changed() []gguf.Tensor {
	return slices.DeleteFunc(slices.Clone(q.layout.Tensors), func(t gguf.Tensor) bool {
		from, _ := q.file.Tensor(t.Name)
		return from.Type == t.Type
	})
}

// importance is what the matrix says of the tensors that are rounded.
func (q *quantization) importance() map[string][]float32 {
	weights := map[string][]float32{}
	if q.matrix == nil {
		return weights
	}
	for _, t := range q.changed() {
		if entry, ok := q.matrix.Entries[t.Name]; ok {
			weights[t.Name] = entry.Importance()
		}
	}
	return weights
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
	if e.isTerminal(e.stderr) {
		bar := &loadingBar{e: e, what: "writing " + printable(c.Out), began: e.now()}
		defer bar.clear()
		job.Progress = bar.show
	}
	return job.Run(ctx, c.Out)
}

// sizes says how large the new file is, and what it was made from.
func (q *quantization) sizes() string {
	var parameters, bytes, before int64
	for _, t := range q.layout.Tensors {
		parameters += values(t.Shape)
		bytes += t.Size
	}
	for i := range q.file.Parts() {
		before += q.file.Part(i).Size
	}
	return fmt.Sprintf("%s, %s, %.2f bits per weight; it was %s", q.recipe.Name, binarySize(q.layout.Size),
		8*float64(bytes)/float64(max(parameters, 1)), binarySize(before))
}

// larger says why the new file has much more bits for a weight than its type, if it has.
func (q *quantization) larger() string {
	base := q.recipe.Base
	asked := 8 * float64(base.Bytes()) / float64(base.Block())
	var parameters, bytes int64
	unfilled, widest := 0, 0
	for _, t := range q.changed() {
		parameters, bytes = parameters+values(t.Shape), bytes+t.Size
		if t.Shape[0]%base.Block() != 0 {
			unfilled, widest = unfilled+1, max(widest, t.Shape[0])
		}
	}
	got := 8 * float64(bytes) / float64(max(parameters, 1))
	if parameters == 0 || got < 1.4*asked {
		return ""
	}
	why := "its rules give more bits to what small models suffer from most; --pure gives all the same"
	switch {
	case base == quant.MXFP4:
		why = "it is for experts, and gives everything else Q8_0: Q4_0 has about the same size for all"
	case unfilled > 0:
		why = fmt.Sprintf("rows of %d values do not fill its blocks of %d, so %s got a larger type: Q4_0, Q5_0 and Q8_0 have "+
			"blocks of 32", widest, base.Block(), count(unfilled, "tensor"))
	}
	return fmt.Sprintf("%s has %.2f bits per weight, but what was written has %.2f: %s", q.recipe.Name, asked, got, why)
}

// print lists what would be written.
func (q *quantization) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tensor\tshape\tfrom\tto\tsize")
	for _, to := range q.layout.Tensors {
		from, _ := q.file.Tensor(to.Name)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", printable(to.Name), shapeText(to.Shape), from.Type, to.Type,
			binarySize(to.Size))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := q.missing(); err != nil {
		fmt.Fprintf(w, "\n%v\n", err)
	}
	if note := q.larger(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", q.sizes())
	return err
}
