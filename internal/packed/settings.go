package packed

import (
	"encoding/json"
	"fmt"
)

// formatOf finds the format by what config.json says.
func formatOf(mlxText, text []byte) (*format, error) {
	var method struct {
		Name      string          `json:"quant_method"`
		Algorithm string          `json:"quant_algo"`
		Bits      json.RawMessage `json:"bits"`
		Block     []int           `json:"weight_block_size"`
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &method); err != nil {
			return nil, fmt.Errorf("quantization_config: %w", err)
		}
	}
	switch {
	case len(mlxText) > 0:
		return mlx(mlxText)
	case method.Name == "" && method.Bits != nil:
		return mlx(text)
	}
	switch method.Name {
	case "", "mxfp4": // MXFP4 is read as it is
		return float8([2]int{}, false), nil
	case "modelopt":
		switch method.Algorithm {
		case "FP8":
			return float8([2]int{}, true), nil
		case "NVFP4":
			return modelOptFloat4(), nil
		}
		return nil, fmt.Errorf("quantization_config: quant_algo is %.40q, want FP8 or NVFP4", method.Algorithm)
	case "fp8", "fbgemm_fp8":
		block, err := blockOf(method.Block)
		if err != nil {
			return nil, fmt.Errorf("quantization_config: weight_block_size: %w", err)
		}
		return float8(block, true), nil
	case "bcml1":
		return settled(text, bcml)
	case "gptq":
		return settled(text, gptq)
	case "awq":
		return settled(text, awq)
	case "compressed-tensors":
		return settled(text, compressed)
	}
	return nil, fmt.Errorf("its weights were quantised by %.40q, want fp8, gptq, awq, compressed-tensors or MLX: "+
		"get the model in BF16 or F16", method.Name)
}

// settled reads the settings of a format, and makes it.
func settled[S any](text []byte, of func(S) (*format, error)) (*format, error) {
	var s S
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("quantization_config: %w", err)
	}
	return of(s)
}
