package convert_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// fixture is one that is compared with its file.
type fixture struct{ *converttest.Fixture }

// A folder with a fixture's weights becomes the fixture: every tensor byte for byte, every key with its type and value.
func TestFixtures(t *testing.T) {
	all, samples := converttest.Folders(t)
	require.Len(t, all, 37)
	for name, tensors := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := fixture{converttest.Open(t, name, tensors)}
			require.Greater(t, len(samples[name]), len(tensors)/2, "what transformers had is known")
			x.isTransformers(t, samples[name])
			plan, err := convert.Plan(x.Folder, x.Options())
			require.NoError(t, err)
			require.Len(t, plan.Tensors, len(x.File.Tensors))
			for i := range plan.Tensors {
				x.sameTensor(t, &plan.Tensors[i])
			}
			x.sameKeys(t, plan)
			for _, one := range tensors {
				require.Contains(t, x.Data, one.Name, "is not used")
			}
		})
	}
}

// isTransformers compares the folder with what transformers had, and with what it can have: weights in BF16.
func (x fixture) isTransformers(t *testing.T, samples converttest.Sampled) {
	for _, one := range x.Folder.Tensors {
		if one.Type != element.F32 {
			continue
		}
		data := x.Data[one.Name]
		for i := 0; i < len(data); i += 4 {
			if data[i] != 0 || data[i+1] != 0 {
				require.Fail(t, "is none of BF16", "%s: element %d", one.Name, i/4)
			}
		}
		for i, want := range samples[one.Name] {
			got := binary.LittleEndian.Uint16(data[4*((i*7919+13)%(len(data)/4))+2:])
			require.InDelta(t, want, got, 1, "%s: sample %d", one.Name, i)
		}
	}
}

func (x fixture) sameTensor(t *testing.T, p *convert.Tensor) {
	want, ok := x.File.Tensor(p.Name)
	require.True(t, ok, p.Name)
	require.Equal(t, want.Shape, p.Shape, p.Name)
	to := quant.BF16
	switch {
	case p.Vector:
		to = quant.F32
	case p.Scales != nil:
		to = quant.MXFP4
	}
	require.Equal(t, want.Type, to, p.Name)
	var got bytes.Buffer
	require.NoError(t, p.Write(&got, to, func(name string, use func([]byte) error) error { return use(x.Data[name]) }))
	require.NoError(t, x.File.View(want, func(data []byte) error {
		if p.Change == convert.NegExp {
			return near(data, got.Bytes())
		}
		if !bytes.Equal(data, got.Bytes()) {
			return fmt.Errorf("%s has other bytes", p.Name)
		}
		return nil
	}))
}

// near compares float32 values to the last bit but one: another exp rounds otherwise.
func near(want, got []byte) error {
	for i := 0; i < len(want); i += 4 {
		w, g := binary.LittleEndian.Uint32(want[i:]), binary.LittleEndian.Uint32(got[i:])
		if w-g+1 > 2 {
			return fmt.Errorf("value %d is %v, want %v", i/4, math.Float32frombits(g), math.Float32frombits(w))
		}
	}
	return nil
}

// sameKeys compares all keys but the name, which was given to the converter by hand.
func (x fixture) sameKeys(t *testing.T, plan *convert.Model) {
	skip := []string{"general.name", "general.basename", "general.finetune", "general.version"}
	for _, key := range plan.Meta.Keys() {
		require.True(t, x.File.Meta.Has(key) || slices.Contains(skip, key), "%s is too much", key)
	}
	for _, key := range x.File.Meta.Keys() {
		want, _ := x.File.Meta.Get(key)
		got, ok := plan.Meta.Get(key)
		if slices.Contains(skip, key) {
			continue
		}
		require.True(t, ok, "%s is missing", key)
		require.Equal(t, want, got, key)
	}
}
