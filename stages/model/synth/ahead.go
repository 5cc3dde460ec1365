package synth

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// In this file a model gets a head that predicts the token after the next one, and whose guesses are often right, as
// those of trained heads are: the head sees mostly the embedding of the last token, as the layers of such a model leave
// it mostly alone.

// Ahead is the number of a model's heads.
type Ahead struct {
	NextLayers int `json:"num_nextn_predict_layers"` // of DeepSeek V3
	MTPLayers  int `json:"mtp_num_hidden_layers"`    // of Qwen 3.5
}

// NextHeads is how many heads a file of this shape has: one at most is written.
func (c *Config) NextHeads() int {
	if n := max(c.NextLayers, c.MTPLayers); n > 0 && (c.sigmoids() || families()[c.ModelType].mixer == deltaNet) {
		return 1
	}
	return 0
}

// hasAhead says whether a file holds an optional tensor of a head.
func (c *Config) hasAhead(name string) bool {
	return c.NextHeads() > 0 &&
		(strings.HasSuffix(name, ".nextn.eh_proj.weight") || strings.HasSuffix(name, ".nextn.shared_head_norm.weight"))
}

// quiet is what outputs of layers, beside an embedding of unit size, and what norms differ by are multiplied by in a
// model with a head.
const quiet = 0.05

// foreseeable changes a tensor of a model with a head so that the head sees what comes.
func foreseeable(t *Tensor, w *ir.Weight) {
	for _, part := range []string{"attn_output.", "ssm_out.", "ffn_down"} {
		if strings.Contains(t.Name, part) && w.Use&ir.Matrix != 0 {
			t.Dev *= quiet
		}
	}
	if strings.Contains(t.Name, "norm.") {
		t.Dev *= quiet
	}
	t.Diagonal = strings.HasSuffix(t.Name, ".nextn.eh_proj.weight")
}
