package weights

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/lora"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// isAdapter says whether a folder is an adapter of PEFT, and not a model.
func isAdapter(dir string) bool { return models.IsPEFT(dir) && !checkpoint.Has(dir) }

// adapter writes the GGUF file of an adapter.
func (c *Convert) adapter(e *env.Env) error {
	if c.Base == "" {
		return env.Usagef("%s is an adapter: give the model that it is for, --base MODEL", c.In)
	}
	typ, ok := quant.Parse(cmp.Or(c.Type, quant.F32.String()))
	if !ok || typ.Block() != 1 || !quant.HasEncoder(typ) {
		return env.Usagef("--type: %q is no type for adapters, want F32, F16 or BF16", c.Type)
	}
	base, err := namedmodel.Open(e.Lookup, c.Base)
	if err != nil {
		return err
	}
	defer base.Close()
	a, files, err := models.OpenAdapter(c.In, &base.Meta)
	if err != nil {
		return err
	}
	defer files.Close()
	if err := models.AdapterFits(a, base); err != nil {
		return err
	}
	arch, err := base.Meta.String("general.architecture")
	if err != nil {
		return err
	}
	m, outputs := a.Outputs(arch)
	if c.Name != "" {
		m.Set("general.name", c.Name)
	}
	out, err := e.Create(c.Output, c.Force)
	if err != nil {
		return err
	}
	if err := env.Finish(out, c.Output, writeAdapter(e, out, c.Output, m, outputs, typ)); err != nil || out.Stream {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: adapter, %s, %d matrices\n", env.Printable(c.Output), typ, len(a.Changes))
	return err
}

func writeAdapter(e *env.Env, file io.Writer, path string, m *meta.Map, outputs []lora.Output, typ quant.Type) error {
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	tensors := make([]gguf.Tensor, len(outputs))
	for i, o := range outputs {
		tensors[i] = gguf.Tensor{Name: o.Name, Type: typ, Shape: o.Shape}
	}
	w, i := bufio.NewWriterSize(file, 1<<20), 0
	err := gguf.Write(w, m, tensors, func(_ *gguf.Tensor, to io.Writer) error {
		i++
		return cmp.Or(ctx.Err(), outputs[i-1].Write(to, typ))
	})
	return env.Unfit(path, errors.Join(err, w.Flush()))
}
