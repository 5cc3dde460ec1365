package converttest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Piece is a tensor of a folder with its bytes.
type Piece struct {
	element.Tensor
	Data []byte
}

// Packing is a way in which other tools pack the matrices of models.
type Packing struct {
	Name   string
	config string // beside the model's own
	// pack makes numbers of so many rows and columns, and the pieces that hold them.
	pack func(module string, rows, columns int) ([]Piece, []float32)
}

// Sizes of the model that is packed.
const (
	packedGroup = 32
	packedWidth = 64
)

// Packings are the ways that folders are read in. Each has the numbers code - zero times scale, or code times scale
// plus bias, for codes, zeros and scales that depend on where they are.
func Packings() []Packing {
	const weights = `"weights": {"num_bits": 4, "type": "int", "symmetric": true, "strategy": "group", "group_size": 32}`
	return []Packing{
		{"FP8", `"quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32]}`, packFloat8},
		{"GPTQ", `"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}`, packGPTQ},
		{"AWQ", `"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}`, packAWQ},
		{"MLX", `"quantization": {"bits": 4, "group_size": 32}`, packMLX},
		{"compressed-tensors", `"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
			"config_groups": {"group_0": {"targets": ["Linear"], ` + weights + `}}}`, packCompressed},
		{"NVFP4", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}`, packNVFP4},
	}
}

func codeOf(row, column int) uint32    { return uint32(row*7+column*5+column/9) % 16 }
func zeroOf(row, column int) uint32    { return uint32(row*3+column/packedGroup*5) % 15 }
func packedScale(row, col int) float32 { return float32(1+(row+3*(col/packedGroup))%13) / 64 }

// each makes the number of each row and column.
func each(rows, columns int, of func(row, column int) float32) []float32 {
	out := make([]float32, 0, rows*columns)
	for r := range rows {
		for c := range columns {
			out = append(out, of(r, c))
		}
	}
	return out
}

// piece makes a piece of numbers of 16 or 32 bits.
func piece[T uint16 | uint32 | float32](name string, kind element.Type, rows, columns int, of func(r, c int) T) Piece {
	p := Piece{Tensor: element.Tensor{Name: name, Type: kind, Shape: []int{rows, columns}}}
	for r := range rows {
		for c := range columns {
			p.Data, _ = binary.Append(p.Data, binary.LittleEndian, of(r, c))
		}
	}
	return p
}

// eight puts eight codes into a word, the first lowest.
func eight(code func(i int) uint32) (word uint32) {
	for i := range 8 {
		word |= code(i) << (4 * i)
	}
	return word
}

func packFloat8(module string, rows, columns int) ([]Piece, []float32) {
	p := Piece{Tensor: element.Tensor{Name: module + ".weight", Type: element.F8E4M3, Shape: []int{rows, columns}}}
	scale := func(r, c int) float32 { return packedScale(r/32, c) }
	values := each(rows, columns, func(r, c int) float32 {
		power, eighths := int(codeOf(r, c)), (r+c)%8 // 1.eighths · 2^(power - 7), for powers above 0
		power = max(power, 1) - power/15
		p.Data = append(p.Data, byte(power<<3|eighths))
		return float32(math.Ldexp(1+float64(eighths)/8, power-7)) * scale(r, c)
	})
	return []Piece{p, piece(module+".weight_scale_inv", element.F32, (rows+31)/32, columns/32,
		func(r, c int) float32 { return scale(r*32, c*32) })}, values
}

// packZeros has the numbers of GPTQ and AWQ.
func packZeros(rows, columns int, less uint32) []float32 {
	return each(rows, columns, func(r, c int) float32 {
		return float32(int(codeOf(r, c))-int(zeroOf(r, c)+less)) * packedScale(r, c)
	})
}

func packGPTQ(module string, rows, columns int) ([]Piece, []float32) {
	return []Piece{
		piece(module+".qweight", element.I32, columns/8, rows, func(w, r int) uint32 {
			return eight(func(i int) uint32 { return codeOf(r, 8*w+i) })
		}),
		piece(module+".qzeros", element.I32, columns/packedGroup, rows/8, func(g, w int) uint32 {
			return eight(func(i int) uint32 { return zeroOf(8*w+i, g*packedGroup) })
		}),
		piece(module+".scales", element.F16, columns/packedGroup, rows, func(g, r int) uint16 {
			return quant.F32ToF16(packedScale(r, g*packedGroup))
		}),
	}, packZeros(rows, columns, 1)
}

func packAWQ(module string, rows, columns int) ([]Piece, []float32) {
	order := [8]int{0, 2, 4, 6, 1, 3, 5, 7}
	return []Piece{
		piece(module+".qweight", element.I32, columns, rows/8, func(c, w int) uint32 {
			return eight(func(i int) uint32 { return codeOf(8*w+order[i], c) })
		}),
		piece(module+".qzeros", element.I32, columns/packedGroup, rows/8, func(g, w int) uint32 {
			return eight(func(i int) uint32 { return zeroOf(8*w+order[i], g*packedGroup) })
		}),
		piece(module+".scales", element.F16, columns/packedGroup, rows, func(g, r int) uint16 {
			return quant.F32ToF16(packedScale(r, g*packedGroup))
		}),
	}, packZeros(rows, columns, 0)
}

func packMLX(module string, rows, columns int) ([]Piece, []float32) {
	bias := func(r, c int) float32 { return -packedScale(c/packedGroup, r*packedGroup) * 4 }
	return []Piece{
			piece(module+".weight", element.U32, rows, columns/8, func(r, w int) uint32 {
				return eight(func(i int) uint32 { return codeOf(r, 8*w+i) })
			}),
			piece(module+".scales", element.BF16, rows, columns/packedGroup, func(r, g int) uint16 {
				return quant.F32ToBF16(packedScale(r, g*packedGroup))
			}),
			piece(module+".biases", element.BF16, rows, columns/packedGroup, func(r, g int) uint16 {
				return quant.F32ToBF16(bias(r, g*packedGroup))
			}),
		}, each(rows, columns, func(r, c int) float32 {
			return float32(codeOf(r, c))*packedScale(r, c) + bias(r, c)
		})
}

func packCompressed(module string, rows, columns int) ([]Piece, []float32) {
	shape := Piece{Tensor: element.Tensor{Name: module + ".weight_shape", Type: element.I64, Shape: []int{2}}}
	shape.Data, _ = binary.Append(nil, binary.LittleEndian, []uint64{uint64(rows), uint64(columns)})
	return []Piece{shape,
			piece(module+".weight_packed", element.I32, rows, columns/8, func(r, w int) uint32 {
				return eight(func(i int) uint32 { return codeOf(r, 8*w+i) })
			}),
			piece(module+".weight_scale", element.F16, rows, columns/packedGroup, func(r, g int) uint16 {
				return quant.F32ToF16(packedScale(r, g*packedGroup))
			}),
		}, each(rows, columns, func(r, c int) float32 {
			return float32(int(codeOf(r, c))-8) * packedScale(r, c)
		})
}

// packNVFP4 has codes of two floats a byte, in groups of 16 with scales of 1 to 1.875, and a factor for the tensor.
func packNVFP4(module string, rows, columns int) ([]Piece, []float32) {
	const group, factor = 16, 0.0625
	eighths := func(r, c int) int { return (r + 3*(c/group)) % 8 }
	bytes := func(name string, kind element.Type, width int, of func(r, c int) byte) Piece {
		p := Piece{Tensor: element.Tensor{Name: module + name, Type: kind, Shape: []int{rows, width}}}
		for r := range rows {
			for c := range width {
				p.Data = append(p.Data, of(r, c))
			}
		}
		return p
	}
	whole := piece(module+".weight_scale_2", element.F32, 1, 1, func(int, int) float32 { return factor })
	whole.Shape = []int{}
	return []Piece{whole,
			bytes(".weight", element.U8, columns/2, func(r, c int) byte { return byte(codeOf(r, 2*c) | codeOf(r, 2*c+1)<<4) }),
			bytes(".weight_scale", element.F8E4M3, columns/group, func(r, g int) byte { return byte(7<<3 | eighths(r, g*group)) }),
		}, each(rows, columns, func(r, c int) float32 {
			code := codeOf(r, c)
			v := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}[code%8] * (1 + float32(eighths(r, c))/8) * factor
			if code >= 8 {
				v = float32(math.Copysign(float64(v), -1))
			}
			return v
		})
}

// Folders writes a model of Llama's kind twice: packed, and plain with the same numbers.
func (p Packing) Folders(t testing.TB) (packed, plain string) {
	t.Helper()
	const config = `{"architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-5, "vocab_size": 40, "num_hidden_layers": 2,
		"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
		"max_position_embeddings": 512`
	numbers := func(name string, rows, columns int) Piece {
		x := piece(name, element.F32, rows, columns, func(r, c int) float32 { return float32(r-c) / 64 })
		if columns == 1 {
			x.Shape = x.Shape[:1]
		}
		return x
	}
	both := []Piece{numbers("model.embed_tokens.weight", 40, packedWidth), numbers("model.norm.weight", packedWidth, 1),
		numbers("lm_head.weight", 40, packedWidth)}
	var others, values []Piece
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		both = append(both, numbers(layer+"input_layernorm.weight", packedWidth, 1),
			numbers(layer+"post_attention_layernorm.weight", packedWidth, 1))
		for module, shape := range map[string][2]int{"self_attn.q_proj": {64, 64}, "self_attn.k_proj": {32, 64},
			"self_attn.v_proj": {32, 64}, "self_attn.o_proj": {64, 64}, "mlp.gate_proj": {96, 64}, "mlp.up_proj": {96, 64},
			"mlp.down_proj": {64, 96}} {
			pieces, known := p.pack(layer+module, shape[0], shape[1])
			others = append(others, pieces...)
			values = append(values, piece(layer+module+".weight", element.F32, shape[0], shape[1], func(r, c int) float32 {
				return known[r*shape[1]+c]
			}))
		}
	}
	return WriteFolder(t, config+", "+p.config+"}", append(others, both...)), WriteFolder(t, config+"}", append(values, both...))
}

// WriteFolder writes a folder of config.json and one safetensors file.
func WriteFolder(t testing.TB, config string, pieces []Piece) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), Safetensors(t, pieces), 0o600))
	return dir
}

// Safetensors is a file of tensors of any type.
func Safetensors(t testing.TB, pieces []Piece) []byte {
	t.Helper()
	header := map[string]any{}
	var data bytes.Buffer
	for _, p := range pieces {
		shape := p.Shape
		if shape == nil {
			shape = []int{}
		}
		header[p.Name] = map[string]any{"dtype": p.Type.String(), "shape": shape,
			"data_offsets": []int{data.Len(), data.Len() + len(p.Data)}}
		data.Write(p.Data)
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(out, text...), data.Bytes()...)
}
