package synth

import (
	"cmp"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// In this file a model gets a head that predicts the token after the next one, and whose guesses are often right, as
// those of trained heads are: the head sees mostly the embedding of the last token, as the layers of such a model leave
// it mostly alone.

// Ahead is the number of a model's heads; or what a head is made for that has a file of its own (EAGLE-3), which this
// one is if DraftVocab is set. It then knows all tokens here.
type Ahead struct {
	DraftVocab  int `json:"draft_vocab_size"`
	TargetWidth int `json:"target_hidden_size"`       // 0: its own
	NextLayers  int `json:"num_nextn_predict_layers"` // of DeepSeek V3
	MTPLayers   int `json:"mtp_num_hidden_layers"`    // of Qwen 3.5
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

// completeAhead has a head be one, whatever kind of layer it has.
func (c *Config) completeAhead() {
	if c.DraftVocab > 0 {
		c.ModelType, c.TargetWidth = eagle, cmp.Or(c.TargetWidth, c.Width)
	}
}

// eagle is the model_type of heads that have files of their own, here: their config.json names that of their layer.
const eagle = "eagle3"

// attentive changes a tensor of a head with a file of its own so that it sees mostly the last token's embedding: its
// rows attend to themselves, and what they attend to outweighs hidden states.
func attentive(t *Tensor, w *ir.Weight) {
	const loud = 3
	switch {
	case strings.Contains(t.Name, ".attn_norm."):
		t.Mean = loud
	case strings.Contains(t.Name, ".attn_") && w.Use&ir.Matrix != 0:
		t.Diagonal = true
	case strings.HasPrefix(t.Name, "fc."), strings.Contains(t.Name, "ffn_down"):
		t.Dev *= quiet
	}
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
