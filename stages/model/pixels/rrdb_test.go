package pixels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// conv is a convolution's tensors, as files have them: contiguous dimension first.
func conv(name string, window, in, out int) []ir.Tensor {
	return []ir.Tensor{{Name: name + ".weight", Type: quant.F16, Shape: []int{window, window, in, out}},
		{Name: name + ".bias", Type: quant.F32, Shape: []int{out}}}
}

// network is the tensors of an RRDBNet.
func network(in, features, growth, blocks int) (all []ir.Tensor) {
	add := func(name string, in, out int) { all = append(all, conv(name, 3, in, out)...) }
	add("conv_first", in, features)
	for i := range blocks {
		for k := 1; k <= 3; k++ {
			for c := range 4 {
				add(fmt.Sprintf("body.%d.rdb%d.conv%d", i, k, c+1), features+c*growth, growth)
			}
			add(fmt.Sprintf("body.%d.rdb%d.conv5", i, k), features+4*growth, features)
		}
	}
	for _, name := range []string{"conv_body", "conv_up1", "conv_up2", "conv_hr"} {
		add(name, features, features)
	}
	add("conv_last", features, 3)
	return all
}

func TestScales(t *testing.T) {
	for _, c := range []struct{ in, scale, cell int }{{3, 4, 1}, {12, 2, 2}, {48, 1, 4}} {
		u, err := NewUpscaler(network(c.in, 64, 32, 2))
		require.NoError(t, err)
		require.Equal(t, [3]int{c.scale, c.cell, 64}, [3]int{u.Scale, u.Cell, u.Wide})
		require.Len(t, u.Segments, 1+3*2+1)
	}
}

// TestNames: tensors are found by all names that were published.
func TestNames(t *testing.T) {
	for _, c := range [][2]string{
		{"params_ema.conv_first.weight", "conv_first.weight"}, {"params.body.3.rdb2.conv4.bias", "body.3.rdb2.conv4.bias"},
		{"model.conv_hr.bias", "conv_hr.bias"}, {"model.0.weight", "conv_first.weight"},
		{"model.1.sub.7.RDB3.conv5.0.weight", "body.7.rdb3.conv5.weight"}, {"model.1.sub.23.bias", "conv_body.bias"},
		{"model.3.weight", "conv_up1.weight"}, {"model.6.bias", "conv_up2.bias"}, {"model.8.weight", "conv_hr.weight"},
		{"model.10.weight", "conv_last.weight"}, {"conv_last.bias", "conv_last.bias"},
	} {
		require.Equal(t, c[1], upscalerName(c[0]))
	}
}

func TestUpscalerFaults(t *testing.T) {
	without := func(name string) []ir.Tensor {
		all := network(3, 8, 4, 1)
		for i := range all {
			if all[i].Name == name {
				all[i].Name = "other"
			}
		}
		return all
	}
	wide := network(3, 8, 4, 1)
	wide[0].Shape = []int{5, 5, 3, 8}
	for _, c := range []struct {
		name string
		file []ir.Tensor
		want string
	}{
		{"empty", nil, "no upscaler that is known (Real-ESRGAN's RRDBNet): conv_first.weight is missing"},
		{"no body", without("body.0.rdb1.conv1.weight"), "body.0.rdb1.conv1.weight is missing"},
		{"no end", without("conv_last.weight"), `"conv_last.weight" is missing`},
		{"channels", network(6, 8, 4, 1), "conv_first.weight takes 6 channels, want 3, 12 or 48"},
		{"window", wide, "want windows of 9 pixels"},
		{"blocks", network(3, 1, 1, 257), "body has 257 blocks, want at most 256"},
		{"more", append(network(3, 8, 4, 1), conv("conv_up3", 3, 8, 8)...), "conv_up3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewUpscaler(c.file)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestAnyShapes: shapes that a file has made up are an error, and no panic.
func TestAnyShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _ = NewUpscaler(misshapen(t, network(3, 8, 4, 1), 3, 4, 8, 9))
	})
}

// TestTurned: a window's values come in the order of its pixels, each with all channels.
func TestTurned(t *testing.T) {
	x := Tensors([]ir.Tensor{{Name: "w", Type: quant.F16, Shape: []int{2, 1, 3, 2}}}, strings.ToLower)[0]
	require.Equal(t, []int{6, 2}, x.Shape)
	got, err := x.Turned([]byte("a1a2b1b2c1c2" + "A1A2B1B2C1C2"))
	require.NoError(t, err)
	require.Equal(t, "a1b1c1a2b2c2"+"A1B1C1A2B2C2", string(got))
	x.Type = quant.Q8_0
	_, err = x.Turned(nil)
	require.ErrorContains(t, err, "w is of type Q8_0, want F32, F16 or BF16")
	one := Tensors([]ir.Tensor{{Name: "w", Type: quant.F16, Shape: []int{1, 1, 3, 2}}}, nil)[0]
	require.Zero(t, one.Turn)
}

// TestRows: a cell's pixels lie colour by colour, and what is beyond the picture repeats its last pixels.
func TestRows(t *testing.T) {
	u := &Upscaler{Cell: 2}
	grid, rows, err := u.Rows(1, 3, func(y, x, c int) float32 { return float32(100*y + 10*x + c) })
	require.NoError(t, err)
	require.Equal(t, ir.Grid{Height: 1, Width: 2}, grid)
	require.Equal(t, []float32{0, 10, 0, 10, 1, 11, 1, 11, 2, 12, 2, 12}, rows[:12])
	require.Equal(t, []float32{20, 20, 20, 20, 21, 21, 21, 21, 22, 22, 22, 22}, rows[12:])
	_, _, err = u.Rows(0, 3, nil)
	require.Error(t, err)
}
