package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func writeJSON(inName, out string, peers []string) {
	in, err := gguf.Open(inName)
	check(err)
	res := map[string]map[string]json.Number{}
	for _, name := range peers {
		peer, err := gguf.Open(name)
		check(err)
		_ = filepath.Base(name)
		for i := range peer.Tensors {
			p := &peer.Tensors[i]
			if p.Type == quant.F32 || !strings.HasPrefix(p.Name, "blk.") {
				continue
			}
			s, _ := in.Tensor(p.Name)
			n := 1
			for _, d := range s.Shape {
				n *= d
			}
			src, theirs := make([]float32, n), make([]float32, n)
			check(in.View(s, func(b []byte) error { return quant.Dequantize(s.Type, src, b) }))
			check(peer.View(p, func(b []byte) error { return quant.Dequantize(p.Type, theirs, b) }))
			if res[p.Type.String()] == nil {
				res[p.Type.String()] = map[string]json.Number{}
			}
			res[p.Type.String()][p.Name] = json.Number(strconv.FormatFloat(rmse(src, theirs), 'g', 6, 64))
		}
	}
	f, err := os.Create(out)
	check(err)
	e := json.NewEncoder(f)
	e.SetIndent("", " ")
	check(e.Encode(map[string]any{
		"source": "llama.cpp v0.5.0 llama_model_quantize --pure of draft-bf16.gguf, no importance matrix: root mean square error of each tensor",
		"rmse":   res}))
	check(f.Close())
}
