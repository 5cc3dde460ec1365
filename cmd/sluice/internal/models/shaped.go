package models

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Shaped is a model of which no weights are there: its program, and its tensors as a file of some type
// has them.
type Shaped struct {
	Meta       *meta.Map
	Program    *ir.Program              // nil: of pictures, which have several
	Tensors    []gguf.Tensor            // in file order
	Values     map[string]*synth.Tensor // by name
	Parameters int64
	Active     int64 // of them, those that a token uses
	Bytes      int64 // of all tensors
}

// ShapedOf lists the tensors of the program that a shape's metadata gives, each with its type by the recipe.
func ShapedOf(name string, config *synth.Config, recipe *ftype.Type) (*Shaped, error) {
	md := config.Meta(name)
	program, err := arch.Record(md, config.Has, arch.Options{})
	if err != nil {
		return nil, err
	}
	programs := []*ir.Program{program}
	if config.NextHeads() > 0 {
		head, err := arch.Record(md, config.Has, arch.Options{Head: true})
		if err != nil {
			return nil, err
		}
		programs = append(programs, head)
	}
	ear, err := arch.RecordEar(md, config.Has)
	if err != nil {
		return nil, err
	}
	if ear != nil {
		programs = append(programs, ear.Program)
	}
	s := &Shaped{Meta: recipe.Meta(md), Program: program}
	if err := s.list(md, config.Tensors(programs...), recipe); err != nil {
		return nil, err
	}
	architecture, _ := md.String("general.architecture")
	experts, _ := md.Int(architecture + ".expert_count")
	used, _ := md.Int(architecture + ".expert_used_count")
	for _, t := range s.Tensors {
		n := Values(t.Shape)
		if strings.Contains(t.Name, "_exps.") && experts > 0 { // of all experts together
			n = n * used / experts
		}
		s.Active += n
	}
	return s, nil
}

// ShapedPicture lists the tensors of a network that pictures are made with.
func ShapedPicture(p *synth.Picture, recipe *ftype.Type) (*Shaped, error) {
	md := new(meta.Map)
	md.Set("general.architecture", p.Arch)
	md.Set("general.type", "model")
	md.Set("general.name", p.Name+" (random weights)")
	s := &Shaped{Meta: recipe.Meta(md)}
	return s, s.list(md, p.Tensors(), recipe)
}

// list gives tensors their types.
func (s *Shaped) list(md *meta.Map, all []synth.Tensor, recipe *ftype.Type) error {
	before := make([]ftype.Tensor, len(all))
	s.Values = map[string]*synth.Tensor{}
	for i := range all {
		t := &all[i]
		before[i] = ftype.Tensor{Name: t.Name, Type: quant.F16, Shape: t.Shape}
		if t.Vector {
			before[i].Type = quant.F32
		}
		s.Values[t.Name] = t
	}
	types, err := recipe.Types(md, before, ftype.Options{})
	if err != nil {
		return err
	}
	for i, t := range all {
		if t.Vector || len(t.Shape) > 3 { // convolutions are read pixel by pixel
			types[i] = before[i].Type
		}
		if t.Below > 0 {
			types[i] = quant.I32
		}
		row, err := types[i].RowBytes(t.Shape[0])
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		n := Values(t.Shape)
		s.Tensors = append(s.Tensors, gguf.Tensor{Name: t.Name, Type: types[i], Shape: t.Shape})
		s.Parameters += n
		s.Bytes += n / int64(t.Shape[0]) * int64(row)
	}
	return nil
}

// Bound is the program with the tensors.
func (s *Shaped) Bound() (*ir.Bound, error) {
	tensors := make([]ir.Tensor, len(s.Tensors))
	for i, t := range s.Tensors {
		tensors[i] = ir.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
	}
	return ir.Bind(s.Program, tensors)
}
