package backendtest

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Encoder is the name of the family that has EncoderLayer as its model.
const Encoder = "encoder"

// Keyed is the name of the family whose states cards have no kernels for.
const Keyed = "keyed"

// Families lists the families of small models that every device computes.
func Families() []string {
	all := []string{Encoder}
	for i := range models {
		if models[i].name != Keyed {
			all = append(all, models[i].name)
		}
	}
	return all
}

// Small is a family's model of two layers, with random weights of a type whose blocks have no more than 32 values.
func Small(family string, typ quant.Type) (*Model, error) { return Sized(family, typ, 64) }

// Sized is Small with rows of so many features, a multiple of 32.
func Sized(family string, typ quant.Type, width int) (*Model, error) {
	record := func(small) (*ir.Program, error) { return nil, fmt.Errorf("%q is no family of small models", family) }
	if family == Encoder {
		record = func(small) (*ir.Program, error) { return EncoderLayer(2, 0, 0).Program(1 << 10) }
	}
	for i := range models {
		if models[i].name == family {
			record = models[i].record
		}
	}
	p, err := record(small{layers: 2, width: width, ffn: 96, vocab: 300, heads: 4, kvHeads: 2, head: 16, used: 2})
	if err != nil {
		return nil, err
	}
	return made(judge.Random(p, 41, judge.All(typ)))
}
