package vision

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestLayout: every patch has one row, windows hold all rows, and what becomes a row of text is together again after
// Join, whatever the order was.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tower := &Tower{Patch: rapid.IntRange(1, 3).Draw(t, "patch"), Merge: rapid.IntRange(1, 3).Draw(t, "merge"),
			window: rapid.IntRange(0, 3).Draw(t, "window"), class: rapid.Bool().Draw(t, "class")}
		unit := tower.Patch * tower.Merge
		if tower.class {
			tower.window = 0
		}
		h, w := rapid.IntRange(1, 7).Draw(t, "height"), rapid.IntRange(1, 7).Draw(t, "width")
		if tower.class {
			w, tower.Image = h, h*unit
		}
		l, err := tower.Layout(h*unit, w*unit)
		require.NoError(t, err)
		seen, rows := slices.Clone(l.Order), 0
		for _, n := range l.Windows {
			rows += n
			if tower.window > 0 {
				require.LessOrEqual(t, n, tower.window*tower.window*tower.Merge*tower.Merge+1)
			}
		}
		if tower.class {
			require.Equal(t, -1, seen[0])
			seen = seen[1:]
		}
		require.Equal(t, len(l.Order), rows)
		slices.Sort(seen)
		for i, patch := range seen {
			require.Equal(t, i, patch)
		}
		named := make([]float32, len(l.Order)) // each patch's value is its number
		for r, patch := range l.Order {
			named[r] = float32(patch)
		}
		joined := tower.Join(l, named, 1)
		for text := range h * w {
			for i := range tower.Merge * tower.Merge {
				line, column := text/w*tower.Merge+i/tower.Merge, text%w*tower.Merge+i%tower.Merge
				require.Equal(t, float32(line*l.Grid.Width+column), joined[text*tower.Merge*tower.Merge+i])
			}
		}
	})
}

// TestUnfold: a picture whose patches were laid out in blocks is the same picture.
func TestUnfold(t *testing.T) {
	tower := &Tower{Patch: 2, Merge: 2}
	p := &Picture{Height: 4, Width: 8}
	for i := range 3 * p.Height * p.Width {
		p.Values = append(p.Values, float32(i))
	}
	l, err := tower.Layout(p.Height, p.Width)
	require.NoError(t, err)
	var rows []float32
	cut := tower.Cut(l, p)
	for ; len(cut) > 0; cut = cut[4:] { // of a colour of a patch
		rows = append(append(rows, cut[:4]...), cut[:4]...)
	}
	back, err := Unfold(rows, l.Grid, 2, 2, 2)
	require.NoError(t, err)
	require.Equal(t, p, back)
	_, err = Unfold(rows[1:], l.Grid, 2, 2, 2)
	require.Error(t, err)
}

func TestBetween(t *testing.T) {
	low, high, part := between(0, 5, 9)
	require.Equal(t, []any{0, 1, float32(0)}, []any{low, high, part})
	low, high, part = between(4, 5, 9)
	require.Equal(t, []any{8, 8, float32(0)}, []any{low, high, part})
	low, high, part = between(1, 4, 8)
	require.Equal(t, []any{2, 3}, []any{low, high})
	require.InDelta(t, 1.0/3, part, 1e-6)
	_, _, part = between(0, 1, 8)
	require.Zero(t, part)
}

// TestBrokenKeys: all faults of an mmproj file's metadata are found at once, and nothing is recorded of them.
func TestBrokenKeys(t *testing.T) {
	m := &meta.Map{}
	_, err := Record(m, nil)
	require.ErrorContains(t, err, "want an mmproj file")
	m.Set("general.architecture", "clip")
	_, err = Record(m, nil)
	require.ErrorContains(t, err, "projector_type")
	m.Set("clip.projector_type", "ldp")
	_, err = Record(m, nil)
	require.EqualError(t, err, `clip.projector_type: "ldp" is not supported, want one of mlp, gemma3, qwen2.5vl_merger, `+
		`qwen3vl_merger`)
	for _, kind := range Kinds() {
		m.Set("clip.projector_type", kind)
		_, err = Record(m, nil)
		require.ErrorContains(t, err, "clip.vision.patch_size")
		require.ErrorContains(t, err, "clip.vision.image_mean")
	}
}

// TestTensors: a patch's matrix has a dimension for a patch's values, and its second frame a name of its own; a matrix
// that files have the other way round is turned.
func TestTensors(t *testing.T) {
	all := Tensors([]ir.Tensor{
		{Name: "v.patch_embd.weight", Type: quant.F16, Shape: []int{8, 8, 3, 32}},
		{Name: "v.patch_embd.weight.1", Type: quant.F16, Shape: []int{8, 8, 3, 32}},
		{Name: "mm.input_projection.weight", Type: quant.F16, Shape: []int{48, 32}},
		{Name: "v.blk.0.ln1.weight", Type: quant.F32, Shape: []int{32}},
	})
	require.Equal(t, []int{192, 32}, all[0].Shape)
	require.Equal(t, "v.patch_embd.1.weight", all[1].Name)
	require.Equal(t, []int{32, 48}, all[2].Shape)
	require.Equal(t, []bool{false, false, true, false}, []bool{all[0].Turn, all[1].Turn, all[2].Turn, all[3].Turn})
}
