package synth

// Interleaved is the hyper-parameters of models some of whose layers have experts and the others none. There, FFN is
// the size of an expert.
type Interleaved struct {
	DenseFFN   int `json:"intermediate_size_mlp"`
	ExpertStep int `json:"interleave_moe_layer_step"` // of so many layers the last one has experts
}

// completeInterleaved gives sizes the places that they have in other families.
func (c *Config) completeInterleaved() {
	if c.DenseFFN > 0 {
		c.FFN, c.ExpertFFN, c.DenseFFN = c.DenseFFN, c.FFN, 0
	}
}

// llama4s are shapes of Llama 4: Scout, 109B with what sees, and Maverick, 400B.
func llama4s() []Shape {
	scout := Config{ModelType: "llama4_text", Layers: 48, Width: 5120, FFN: 8192, Heads: 40, KVHeads: 8, HeadDim: 128,
		Vocab: 202048, Context: 10485760, Eps: 1e-5, RopeTheta: 500000, Experts: 16, ExpertsUsed: 1,
		Scaling:     &Scaling{Type: "llama3", Factor: 16, Original: 8192, LowFreq: 1, HighFreq: 1},
		Interleaved: Interleaved{DenseFFN: 16384, ExpertStep: 1}}
	maverick := scout
	maverick.Context, maverick.Experts, maverick.ExpertStep, maverick.Scaling = 1048576, 128, 2, nil
	return []Shape{{"llama-4-scout", scout}, {"llama-4-maverick", maverick}}
}
