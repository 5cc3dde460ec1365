package packed

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
)

// samples are a folder of each format.
func samples() map[string]*folder {
	whole := &folder{method: settingsOf("int-quantized", 8, `, "symmetric": false`)}
	whole.add("a.weight", element.I8, []int{2, 4}, make([]byte, 8))
	whole.add("a.weight_scale", element.F32, []int{2, 1}, f32s(1, 2))
	whole.add("a.weight_zero_point", element.I8, []int{2, 1}, make([]byte, 2))
	stack := &folder{method: `{"group_size": 32, "bits": 4}`}
	stack.add("a.weight", element.U32, []int{2, 3, 4}, make([]byte, 96))
	stack.add("a.scales", element.F16, []int{2, 3, 1}, make([]byte, 12))
	stack.add("a.biases", element.F16, []int{2, 3, 1}, make([]byte, 12))
	return map[string]*folder{"fp8": fp8Folder(), "gptq": gptqFolder(), "awq": awqFolder(), "mlx": mlxFolder(), "stack": stack,
		"compressed": compressedFolder(), "whole numbers": whole, "ModelOpt": modelOptFolder(),
		"nvfp4": compressedFloat4Folder("nvfp4", 16), "mxfp4": compressedFloat4Folder("mxfp4", 32), "mlx nvfp4": mlxFloat4Folder(),
		"bcml1": bcmlFolder(3, 40)}
}

// fault is one thing that is wrong in a folder.
type fault struct {
	name   string
	change func(*folder)
}

// tensorFaults are what may be wrong with each tensor: it is missing, of another type, or of another shape.
func tensorFaults(f *folder) (all []fault) {
	for i, p := range f.pieces {
		add := func(what string, change func(*piece)) {
			all = append(all, fault{p.Name + " " + what, func(f *folder) { change(&f.pieces[i]) }})
		}
		all = append(all, fault{p.Name + " is missing", func(f *folder) { f.pieces = slices.Delete(f.pieces, i, i+1) }})
		add("has another name", func(p *piece) { p.Name = "z" + p.Name })
		for kind := element.F64; kind <= element.F8E8M0; kind++ {
			add("is of type "+kind.String(), func(p *piece) { p.Type = kind })
		}
		for n := range p.Name {
			add("is "+p.Name[:n]+" by name", func(p *piece) { p.Name = p.Name[:n] })
			add("has a letter more in its name", func(p *piece) { p.Name = p.Name[:n] + "x" + p.Name[n:] })
		}
		add("is a number", func(p *piece) { p.Shape = nil })
		add("is in a list", func(p *piece) { p.Shape = append([]int{7}, p.Shape...) })
		add("is in lists", func(p *piece) { p.Shape = append([]int{1, 7, 3}, p.Shape...) })
		add("is a long list", func(p *piece) { p.Shape = []int{1 << 40} })
		add("is cut off", func(p *piece) { p.data = p.data[:len(p.data)-1] })
		add("has no bytes", func(p *piece) { p.data = nil })
		for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 16} {
			add(fmt.Sprintf("is cut off by %d bytes", n), func(p *piece) { p.data = p.data[:max(len(p.data)-n, 0)] })
			add(fmt.Sprintf("has %d bytes too many", n), func(p *piece) { p.data = slices.Concat(p.data, make([]byte, n)) })
		}
		for d := range p.Shape {
			n := p.Shape[d]
			for _, n := range []int{math.MinInt, -n, -1, 0, n - 2, n - 1, n + 1, n + 2, 3 * n, 5 * n, 7*n + 1, 1 << 29,
				1<<31 - 1, 1 << 31, 1<<32 + n, 1 << 48, 1<<62 + n, math.MaxInt} {
				add(fmt.Sprintf("has %d in dimension %d", n, d), func(p *piece) {
					p.Shape = slices.Clone(p.Shape)
					p.Shape[d] = n
				})
			}
		}
	}
	return all
}

// settingFaults are what may be wrong in config.json.
func settingFaults(f *folder) (all []fault) {
	for _, c := range [][2]string{
		{`"bits": 4`, `"bits": 0`}, {`"bits": 4`, `"bits": -4`}, {`"bits": 4`, `"bits": 7`}, {`"bits": 4`, `"bits": 1e30`},
		{`"bits": 4`, `"bits": "four"`}, {`"bits": 4`, `"bits": 8`}, {`"bits": 4`, `"bits": 4.5`}, {`"bits": 4`, `"bits": 64`},
		{`"group_size": `, `"group_size": 9`}, {`"group_size": `, `"group_size": -`}, {`"group_size": `, `"group_size": 0`},
		{`"group_size": `, `"group_size": 99999999999`}, {`"group_size": `, `"group_size": "`},
		{`"quant_method": "`, `"quant_method": "x`}, {`"quant_method": "`, `"quant_method": 5"`}, {`"version": "gemm"`, `"version": "gemv"`},
		{`"zero_point": true`, `"zero_point": false`}, {`"zero_point": true`, `"zero_point": 1`},
		{`"sym": false`, `"sym": false, "checkpoint_format": "marlin"`}, {`"sym": false`, `"sym": false, "is_marlin_format": true`},
		{`"sym": false`, `"dynamic": []`}, {`[2, 3]`, `[0, 3]`}, {`[2, 3]`, `[2]`}, {`[2, 3]`, `[2, -3]`}, {`[2, 3]`, `[1, 1]`},
		{`[2, 3]`, `"2"`}, {`[2, 3]`, `[99999999999, 3]`}, {`"num_bits": 4`, `"num_bits": 9`}, {`"num_bits": 4`, `"num_bits": 1`},
		{`"num_bits": 4`, `"num_bits": -1`}, {`"type": "int"`, `"type": 3`}, {`"Linear"`, `"re:("`}, {`"Linear"`, `"re:none"`},
		{`"Linear"`, `5`}, {`"Linear"`, `"b.c"`}, {`"format": "`, `"format": "x`}, {`"format": "`, `"format": 3, "x": "`},
		{`"ignore"`, `"transform_config": {"config_groups": {"R1": {}}}, "ignore"`},
		{`"ignore"`, `"sparsity_config": {"format": "sparse-24-bitmask"}, "ignore"`},
		{`"weights": {`, `"weights": [{`}, {`"targets":`, `"target":`}, {`"strategy"`, `"mode": "nvfp4", "strategy"`},
		{`}`, ``}, {`{`, ``}, {`{`, `[`},
	} {
		if text := f.mlx + f.method; strings.Contains(text, c[0]) && c[1] != `"mode": "nvfp4", "strategy"` {
			all = append(all, fault{"config.json: " + c[1], func(f *folder) {
				f.mlx, f.method = strings.Replace(f.mlx, c[0], c[1], 1), strings.Replace(f.method, c[0], c[1], 1)
			}})
		}
	}
	cut := func(text string, of func(*folder) *string) {
		for n := 1; n < len(text); n++ {
			all = append(all, fault{fmt.Sprintf("config.json: cut after %d bytes", n), func(f *folder) { *of(f) = text[:n] }})
		}
	}
	cut(f.mlx, func(f *folder) *string { return &f.mlx })
	cut(f.method, func(f *folder) *string { return &f.method })
	return all
}

// harmless are changes after which a folder means something else, but something.
func harmless(format, change string) bool {
	kinds := []string{"type F32", "type F16", "type BF16", "type F8_E8M0"} // of scales: bytes would be another number
	for _, k := range kinds {
		if strings.Contains(change, "scale") && strings.HasSuffix(change, k) {
			return true // planned; reading tells by the size
		}
	}
	if strings.HasSuffix(change, " by name") || strings.HasSuffix(change, "a letter more in its name") {
		for _, part := range []string{"a.g_idx", "a.weight_g_idx", "a.weight_shape", "a.weight_global_scale"} {
			if strings.HasPrefix(change, part) {
				return true // it may be missing, and belongs to nothing by another name
			}
		}
	}
	return slices.Contains([]string{
		"fp8/a.weight_scale_inv is a.weight_scale by name", "fp8/a.weight is of type F8_E5M2", "gptq/a.g_idx is missing", "compressed/a.weight_shape is missing",
		"compressed/a.weight_g_idx is missing", "nvfp4/a.weight_global_scale is a number",
		"bcml1/a.weight is missing", // another part says that a tensor is
	}, format+"/"+change)
}

// TestBroken: whatever is wrong in a folder is an error that names the tensor or the setting, of a few words, and takes
// no memory that the folder does not justify.
func TestBroken(t *testing.T) {
	for format, sample := range samples() {
		count := 0
		for _, x := range append(tensorFaults(sample), settingFaults(sample)...) {
			broken := sample.with(x.change)
			if same(sample, broken) {
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := broken.openAll()
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%s: %s", format, x.name)
			if harmless(format, x.name) && err == nil {
				continue
			}
			count++
			require.Error(t, err, "%s: %s", format, x.name)
			require.Less(t, len(err.Error()), 400)
			said := strings.Contains(err.Error(), `tensor "`) || strings.Contains(err.Error(), "config.json: ")
			require.True(t, said, "%s: %s: %v", format, x.name, err)
		}
		t.Log(format, count, "broken folders")
		least := 300
		switch format {
		case "bcml1": // of packages: storage/cgml has as many more
			least = 150
		case "mlx nvfp4": // nvfp4, as MLX names it
			least = 200
		}
		require.GreaterOrEqual(t, count, least, format)
	}
}

// same says whether a change has changed nothing that is said.
func same(a, b *folder) bool {
	return a.mlx == b.mlx && a.method == b.method && slices.EqualFunc(a.pieces, b.pieces, func(x, y piece) bool {
		return x.Name == y.Name && x.Type == y.Type && slices.Equal(x.Shape, y.Shape) && len(x.data) == len(y.data)
	})
}

// openAll unpacks a folder, and opens each tensor that is made.
func (f *folder) openAll() error {
	c, err := f.unpack()
	if err != nil {
		return err
	}
	for _, made := range c.Made {
		if err := made.Read(f.bytes, func(read Values) error {
			read(make([]float32, 1), 0)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// TestBrokenParts: faults of what parts hold, and of parts that belong to nothing.
func TestBrokenParts(t *testing.T) {
	set := func(name string, data []byte) func(*folder) {
		return func(f *folder) {
			for i := range f.pieces {
				if f.pieces[i].Name == name {
					f.pieces[i].data = data
				}
			}
		}
	}
	for _, c := range []struct {
		folder *folder
		change func(*folder)
		want   string
	}{
		{gptqFolder(), set("a.g_idx", wordsOf(0, 0, 0, 0, 1, 1, 1, 2)),
			`tensor "a.weight": column 7 belongs to group 2, and there are 2`},
		{compressedFolder(), set("a.weight_shape", shapeBytes(2, 15)), `its weight_shape says [2 15], and there are codes for [2 16]`},
		{compressedFolder(), set("a.weight_g_idx", wordsOf(make([]uint32, 15)...)), `"a.weight_g_idx": has 60 bytes`},
		{gptqFolder(), func(f *folder) { f.add("b.qzeros", element.I32, []int{1, 1}, nil) },
			`tensor "b.qzeros": belongs to a weight that is not there`},
		{gptqFolder(), func(f *folder) { f.add("a.weight", element.F16, []int{8, 8}, nil) },
			`tensor "a.weight": is there, and made of others`},
		{fp8Folder(), func(f *folder) { f.add("a.weight_scale", element.F32, []int{1}, f32s(1)) },
			`has two scales, weight_scale_inv and weight_scale`},
		{fp8Folder(), func(f *folder) { f.pieces = f.pieces[:1] }, "is of type F8_E4M3, and its scale is missing"},
		{&folder{method: `{"quant_method": "bitsandbytes"}`}, func(*folder) {}, `its weights were quantised by "bitsandbytes"`},
		{&folder{method: `{"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"}`}, func(*folder) {},
			`quant_algo is "NVFP4_AWQ", want FP8 or NVFP4`},
		{modelOptFolder(), set("a.weight_scale_2", f32s(0)), `its weight_scale_2 is 0, want a number above 0: the file is damaged`},
		{compressedFloat4Folder("nvfp4", 16), set("a.weight_global_scale", f32s(float32(math.Inf(1)))),
			`its weight_global_scale is +Inf, want a number above 0`},
		{compressedFloat4Folder("nvfp4", 24), func(*folder) {}, `groups of floats of 4 bits are of 24 values, want 16 (NVFP4) or 32`},
		{modelOptFolder(), func(f *folder) { f.add("b.weight", element.U8, []int{1, 8}, make([]byte, 8)) },
			`tensor "b.weight": its weight_scale is missing`},
		{mlxFloat4Folder(), func(f *folder) { f.add("a.biases", element.F16, []int{2, 2}, f16s(0, 0, 0, 0)) },
			`tensor "a.biases": belongs to a weight that is not there, or is none of MLX`},
	} {
		require.ErrorContains(t, c.folder.with(c.change).openAll(), c.want)
	}
}
