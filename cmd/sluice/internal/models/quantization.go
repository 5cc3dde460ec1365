package models

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/imatrix"
)

// Quantization is a model with the types that its tensors are to get.
type Quantization struct {
	File   *gguf.File
	Recipe *ftype.Type
	Matrix *imatrix.Matrix // nil without one
	Layout *gguf.Layout    // of the new file
	Keys   *meta.Map
}

// Plan chooses the types, and reports what cannot be done.
func (q *Quantization) Plan(o ftype.Options, requantize bool) error {
	tensors := make([]ftype.Tensor, len(q.File.Tensors))
	names := make([]string, len(tensors))
	for i, t := range q.File.Tensors {
		tensors[i], names[i] = ftype.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}, t.Name
	}
	types, err := q.Recipe.Types(&q.File.Meta, tensors, o)
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
	q.Keys = q.Recipe.Meta(&q.File.Meta)
	if q.Matrix != nil {
		q.Keys.Set("quantize.imatrix.entries_count", uint32(len(q.Matrix.Entries)))
		q.Keys.Set("quantize.imatrix.chunks_count", uint32(q.Matrix.Chunks))
	}
	q.Layout, err = gguf.Plan(q.Keys, list)
	return err
}

// Missing is an error if the plan cannot be carried out: the importance matrix is of another model, a type has no
// encoder, or a tensor lacks the importance that its type needs.
func (q *Quantization) Missing() error {
	if q.Matrix != nil && !slices.ContainsFunc(q.Layout.Tensors, func(t gguf.Tensor) bool {
		_, ok := q.Matrix.Entries[t.Name]
		return ok
	}) {
		return errors.New("the importance matrix has none of its tensors: make one of this model with sluice imatrix")
	}
	for _, t := range q.Changed() {
		if !quant.HasEncoder(t.Type) {
			return fmt.Errorf("tensor %q: would be %s, which cannot be written yet: choose another file type",
				t.Name, t.Type)
		}
		if !q.Recipe.NeedsImportance(t.Name, t.Type) {
			continue
		}
		if q.Matrix == nil {
			return fmt.Errorf("tensor %q: so few bits as in %s need an importance matrix: make one with "+
				"sluice imatrix, and give it with --imatrix", t.Name, t.Type)
		}
		if _, ok := q.Matrix.Entries[t.Name]; !ok {
			return fmt.Errorf("tensor %q: so few bits as in %s need its importance, which the matrix does not have: "+
				"make one of this model", t.Name, t.Type)
		}
	}
	return nil
}

// Changed lists the tensors of the new file whose type changes.
func (q *Quantization) Changed() []gguf.Tensor {
	return slices.DeleteFunc(slices.Clone(q.Layout.Tensors), func(t gguf.Tensor) bool {
		from, _ := q.File.Tensor(t.Name)
		return from.Type == t.Type
	})
}

// Importance returns the matrix's weights for the tensors that are quantised.
func (q *Quantization) Importance() map[string][]float32 {
	weights := map[string][]float32{}
	if q.Matrix == nil {
		return weights
	}
	for _, t := range q.Changed() {
		if entry, ok := q.Matrix.Entries[t.Name]; ok {
			weights[t.Name] = entry.Importance()
		}
	}
	return weights
}

// Sizes is a line with the sizes of the new file and of its source.
func (q *Quantization) Sizes() string {
	var parameters, bytes, before int64
	for _, t := range q.Layout.Tensors {
		parameters += Values(t.Shape)
		bytes += t.Size
	}
	for i := range q.File.Parts() {
		before += q.File.Part(i).Size
	}
	return fmt.Sprintf("%s, %s, %.2f bits per weight; it was %s", q.Recipe.Name, env.BinarySize(q.Layout.Size),
		8*float64(bytes)/float64(max(parameters, 1)), env.BinarySize(before))
}

// Larger explains why the new file has many more bits per weight than its type, if it has.
func (q *Quantization) Larger() string {
	base := q.Recipe.Base
	asked := 8 * float64(base.Bytes()) / float64(base.Block())
	var parameters, bytes int64
	unfilled, widest := 0, 0
	for _, t := range q.Changed() {
		parameters, bytes = parameters+Values(t.Shape), bytes+t.Size
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
			"blocks of 32", widest, base.Block(), env.Count(unfilled, "tensor"))
	}
	return fmt.Sprintf("%s has %.2f bits per weight, but what was written has %.2f: %s", q.Recipe.Name, asked, got, why)
}

// Print lists the tensors that would be written.
func (q *Quantization) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tensor\tshape\tfrom\tto\tsize")
	for _, to := range q.Layout.Tensors {
		from, _ := q.File.Tensor(to.Name)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", env.Printable(to.Name), ShapeText(to.Shape), from.Type, to.Type,
			env.BinarySize(to.Size))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := q.Missing(); err != nil {
		fmt.Fprintf(w, "\n%v\n", err)
	}
	if note := q.Larger(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", q.Sizes())
	return err
}
