package vision

import (
	"math"
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
			placing: placing{window: rapid.IntRange(0, 3).Draw(t, "window"), class: rapid.Bool().Draw(t, "class")}}
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
	require.EqualError(t, err, `clip.projector_type: "ldp" is not supported, want one of mlp, gemma3, gemma4v, qwen2vl_merger, `+
		`qwen2.5vl_merger, qwen3vl_merger, glm4v, pixtral, internvl, idefics3, llama4, resampler`)
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
	m := &meta.Map{}
	m.Set("clip.projector_type", "gemma3")
	all := Tensors(m, []ir.Tensor{
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

// TestSquares: squares of a picture lie one after another, each line by line with its class in front, and are windows;
// joined, they are line by line again.
func TestSquares(t *testing.T) {
	tower := &Tower{Patch: 2, Merge: 2, Image: 8, Tiles: true, placing: placing{class: true}}
	l, err := tower.Layout(24, 8)
	require.NoError(t, err)
	require.Equal(t, []int{17, 17, 17}, l.Windows)
	require.Equal(t, ir.Grid{Height: 6, Width: 2}, l.Text)
	for i, patch := range l.Order {
		want := i/17*16 + i%17 - 1
		if i%17 == 0 {
			want = -1
		}
		require.Equal(t, want, patch)
	}
	for _, size := range [][2]int{{8, 16}, {12, 8}, {0, 8}} {
		_, err = tower.Layout(size[0], size[1])
		require.ErrorContains(t, err, "want squares of 8, one below another")
	}
}

// TestInner: values of joined patches lie feature by feature, where a convolution joins them.
func TestInner(t *testing.T) {
	tower := &Tower{Patch: 1, Merge: 2, placing: placing{inner: true}}
	l, err := tower.Layout(2, 4)
	require.NoError(t, err)
	var rows []float32
	for _, patch := range l.Order {
		rows = append(rows, float32(patch), float32(10+patch), float32(20+patch))
	}
	require.Equal(t, []float32{0, 1, 4, 5, 10, 11, 14, 15, 20, 21, 24, 25, 2, 3, 6, 7, 12, 13, 16, 17, 22, 23, 26, 27},
		tower.Join(l, rows, 3))
}

// TestBreaks: what stands between lines of rows is after each but the last.
func TestBreaks(t *testing.T) {
	tower := &Tower{Break: "b"}
	l := &Layout{Text: ir.Grid{Height: 3, Width: 2}}
	grid, rows := tower.Between(l.Text, []float32{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}, []float32{8, 9})
	require.Equal(t, []float32{1, 1, 2, 2, 8, 9, 3, 3, 4, 4, 8, 9, 5, 5, 6, 6}, rows)
	require.Equal(t, ir.Grid{Height: 1, Width: 8}, grid)
	require.Equal(t, grid, tower.Placed(l))
	tower.Break = ""
	grid, _ = tower.Between(l.Text, rows, nil)
	require.Equal(t, []ir.Grid{l.Text, l.Text}, []ir.Grid{grid, tower.Placed(l)})
}

// TestAround: positions between learned ones by cubic curves: as PyTorch's grid_sample finds them, without aligned
// corners and with what lies at the border beyond it.
func TestAround(t *testing.T) {
	for learned := 1; learned < 9; learned++ {
		for i := range learned { // as many as there are
			first, by := around(i, learned, learned)
			require.Equal(t, i-1, first)
			require.Equal(t, [4]float32{0, 1, 0, 0}, by)
		}
	}
	first, by := around(0, 8, 4) // at −0.25
	require.Equal(t, -2, first)
	require.InDeltaSlice(t, []float32{-0.03515625, 0.26171875, 0.87890625, -0.10546875}, by[:], 1e-7)
	rapid.Check(t, func(t *rapid.T) {
		n, learned := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "learned")
		first, by := around(rapid.IntRange(0, n-1).Draw(t, "i"), n, learned)
		require.True(t, first >= -2 && first < learned)
		require.InDelta(t, 1, by[0]+by[1]+by[2]+by[3], 1e-5)
	})
	tower := &Tower{Patch: 1, Merge: 1, placing: placing{learned: cubic, grid: 2},
		Patches: &ir.Program{Widths: []int{1}, Inputs: []ir.Input{{Name: Positions}}}}
	l, err := tower.Layout(1, 4)
	require.NoError(t, err)
	rows := tower.Learned(l, []float32{1, 2, 1, 2}) // columns at −0.25, 0.25, 0.75, 1.25, in the middle of two lines
	require.InDeltaSlice(t, []float32{0.8945313, 1.2265625, 1.7734375, 2.1054688}, rows, 1e-5)
}

// TestByAxis: a patch has the position of its column and that of its line; a side has no more than there are.
func TestByAxis(t *testing.T) {
	tower := &Tower{Patch: 1, Merge: 1, placing: placing{learned: byAxis, grid: 3},
		Patches: &ir.Program{Widths: []int{1}, Inputs: []ir.Input{{Name: Positions}}}}
	l, err := tower.Layout(2, 3)
	require.NoError(t, err)
	require.Equal(t, []float32{11, 12, 13, 21, 22, 23}, tower.Learned(l, []float32{1, 2, 3, 10, 20, 30}))
	_, err = tower.Layout(2, 4)
	require.ErrorContains(t, err, "a picture of 4 × 2 patches, and a side has positions for 3")
}

// TestBehind: where the class stands behind the patches, its place is 0, and lines and columns are counted from 1.
func TestBehind(t *testing.T) {
	tower := &Tower{Patch: 2, Merge: 1, Image: 4, placing: placing{class: true, behind: true, first: 1},
		Patches: &ir.Program{Widths: []int{2}, Inputs: []ir.Input{{Name: First}}}}
	l, err := tower.Layout(4, 4)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, -1}, l.Order)
	require.Equal(t, []int{5}, l.Windows)
	require.Equal(t, []ir.Place{{0, 1, 1}, {0, 1, 2}, {0, 2, 1}, {0, 2, 2}, {}}, l.Places)
	require.Equal(t, []float32{0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, tower.First(l))
}

// TestByPart: patches have learned positions that lie as far from the first one, however many there are.
func TestByPart(t *testing.T) {
	tower := &Tower{Patch: 1, Merge: 1, placing: placing{learned: byPart, grid: 4},
		Patches: &ir.Program{Widths: []int{1}, Inputs: []ir.Input{{Name: Positions}}}}
	table := make([]float32, 16)
	for i := range table {
		table[i] = float32(i)
	}
	l, err := tower.Layout(2, 3)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 2, 8, 9, 10}, tower.Learned(l, table))
	l, err = tower.Layout(1, 8)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 1, 1, 2, 2, 3, 3}, tower.Learned(l, table))
	l, err = tower.Layout(3, 1)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 4, 8}, tower.Learned(l, table))
}

// TestAsk: questions stand behind patches, whose columns and lines are waves; their own keys are far away.
func TestAsk(t *testing.T) {
	tower := &Tower{Patch: 1, Merge: 1, Asks: 2, Rows: &ir.Program{Widths: []int{3, 8},
		Inputs: []ir.Input{{Name: Patches, Value: 0}, {Name: Questions, Value: 1}}}}
	l, err := tower.Layout(2, 2)
	require.NoError(t, err)
	require.Equal(t, ir.Grid{Height: 1, Width: 2}, tower.Placed(l))
	patches := slices.Repeat([]float32{7}, 4*3)
	questions := slices.Repeat([]float32{5}, 2*8)
	in := tower.Ask(l, patches, questions)
	require.Equal(t, append(slices.Clone(patches), make([]float32, 2*3)...), in[Patches])
	require.Equal(t, append(make([]float32, 4*8), questions...), in[Questions])
	require.Equal(t, append(make([]float32, 4*unseen), slices.Repeat([]float32{farAway}, 2*unseen)...), in[Unseen])
	for patch := range 4 {
		for i, at := range []int{patch % 2, patch / 2} {
			x := float64(at)
			want := []float64{math.Sin(x), math.Sin(x / 100), math.Cos(x), math.Cos(x / 100)}
			for j, w := range want {
				require.InDelta(t, w, in[Where][patch*8+i*4+j], 1e-6)
			}
		}
	}
	require.Zero(t, slices.Max(in[Where][4*8:]))
}
