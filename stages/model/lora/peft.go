package lora

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// ConfigFile and WeightsFile are what makes a folder an adapter's.
const (
	ConfigFile  = "adapter_config.json"
	WeightsFile = "adapter_model.safetensors"
)

// Named is a matrix of the model's file that a module's weight became; Rows are those of the module, in its order.
type Named struct {
	Matrix string
	Rows   []int
}

// config is what adapter_config.json says, as far as it decides what is computed.
// Wide: it is a file's form.
type config struct {
	Kind       string   `json:"peft_type"`
	Rank       int      `json:"r"`
	Alpha      *float64 `json:"lora_alpha"`
	RS         bool     `json:"use_rslora"`
	Ranks      patterns `json:"rank_pattern"`
	Alphas     patterns `json:"alpha_pattern"`
	Transposed bool     `json:"fan_in_fan_out"`
	Bias       string   `json:"bias"`

	DoRA       bool            `json:"use_dora"`
	QALoRA     bool            `json:"use_qalora"`
	BDLoRA     any             `json:"use_bdlora"`
	OwnBias    bool            `json:"lora_bias"`
	Saved      []string        `json:"modules_to_save"`
	Tokens     json.RawMessage `json:"trainable_token_indices"`
	Copies     json.RawMessage `json:"layer_replication"`
	Invocation json.RawMessage `json:"alora_invocation_tokens"`
	Parameters json.RawMessage `json:"target_parameters"`
}

// patterns are numbers by patterns of module names: the first that matches holds.
type patterns []pattern

type pattern struct {
	text  string
	match *regexp.Regexp
	value float64
}

const (
	mostConfig   = 1 << 20 // bytes
	mostPatterns = 256
	mostPattern  = 512 // bytes
)

// UnmarshalJSON reads an object and keeps the order of its members. Patterns are those of Python's re, as far as Go's
// have the same syntax.
func (p *patterns) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first == nil {
		return err // null
	} else if first != json.Delim('{') {
		return fmt.Errorf("a pattern is %.40v, want an object", first)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		x := pattern{text: fmt.Sprint(key)}
		if err := d.Decode(&x.value); err != nil {
			return err
		}
		if len(*p) == mostPatterns || len(x.text) > mostPattern {
			return fmt.Errorf("more than %d patterns, or one longer than %d bytes", mostPatterns, mostPattern)
		}
		if x.match, err = regexp.Compile(`^(?:.*\.)?(?:` + x.text + `)$`); err != nil {
			return fmt.Errorf("pattern %.80q: %w", x.text, err)
		}
		*p = append(*p, x)
	}
	return nil
}

// of is the number for a module.
func (p patterns) of(module string, otherwise float64) float64 {
	for i := range p {
		if p[i].match.MatchString(module) {
			return p[i].value
		}
	}
	return otherwise
}

// parseConfig reads adapter_config.json and refuses what computes something else.
func parseConfig(text []byte) (*config, error) {
	if len(text) > mostConfig {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", ConfigFile, len(text), mostConfig)
	}
	c := &config{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	set := func(raw json.RawMessage) bool {
		t := string(bytes.TrimSpace(raw))
		return t != "" && t != "null" && t != "[]" && t != "{}"
	}
	for _, no := range []struct {
		has  bool
		what string
	}{
		{c.DoRA, "use_dora"}, {c.QALoRA, "use_qalora"}, {c.BDLoRA != nil && c.BDLoRA != false, "use_bdlora"},
		{c.OwnBias, "lora_bias"}, {c.Transposed, "fan_in_fan_out"}, {c.Bias != "" && c.Bias != "none", "bias"},
		{len(c.Saved) > 0, "modules_to_save"}, {set(c.Tokens), "trainable_token_indices"},
		{set(c.Copies), "layer_replication"}, {set(c.Invocation), "alora_invocation_tokens"},
		{set(c.Parameters), "target_parameters"},
	} {
		if no.has {
			return nil, fmt.Errorf("%s: %s is set: such adapters are not supported, merge this one into its model", ConfigFile,
				no.what)
		}
	}
	switch {
	case c.Kind != "LORA":
		return nil, fmt.Errorf("%s: peft_type is %.40q, want LORA", ConfigFile, c.Kind)
	case c.Alpha == nil || math.IsInf(*c.Alpha, 0) || math.IsNaN(*c.Alpha):
		return nil, fmt.Errorf("%s: lora_alpha is missing", ConfigFile)
	}
	return c, nil
}

// scale is what the change of a module is multiplied by.
func (c *config) scale(module string, rank int) (float32, error) {
	if want := c.Ranks.of(module, float64(c.Rank)); want != float64(rank) {
		return 0, fmt.Errorf("has rank %d, and %s says %g", rank, ConfigFile, want)
	}
	alpha := c.Alphas.of(module, *c.Alpha)
	if c.RS {
		return float32(alpha / math.Sqrt(float64(rank))), nil
	}
	return float32(alpha / float64(rank)), nil
}

// PEFT lists the changes in a folder of PEFT. named says what a module's weight of so many rows became in the model's
// file.
func PEFT(name string, text []byte, tensors []Tensor, named func(module string, rows int) ([]Named, error)) (
	*Adapter, error) {
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a, f := &Adapter{Name: name}, &faults{of: name}
	for module, m := range modulesOf(tensors[:min(len(tensors), mostTensors)], f) {
		if err := m.whole(false); err != nil {
			f.addf(module, "%v", err)
			continue
		}
		scale, err := c.scale(module, m.b.Shape[1])
		if err != nil {
			f.addf(module, "%v", err)
			continue
		}
		changes, err := m.changes(module, scale, named)
		if err != nil {
			f.addf(module, "%v", err)
		}
		a.Changes = append(a.Changes, changes...)
	}
	return a.sorted(f)
}

// module is the factors of a module.
type module struct {
	pair
	table bool // its weight is read by rows, one for each token
}

func modulesOf(tensors []Tensor, f *faults) map[string]module {
	modules := map[string]module{}
	for i := range tensors {
		t := &tensors[i]
		name := strings.TrimSuffix(strings.TrimPrefix(t.Name, "base_model.model."), ".weight")
		name = strings.TrimSuffix(name, ".default")
		at := strings.LastIndexByte(name, '.')
		last := name[at+1:]
		if at < 0 || !slices.Contains([]string{"lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B"}, last) {
			if !isBase(name) {
				f.addf(t.Name, "is no factor of a change (lora_A, lora_B): such adapters are not supported")
			}
			continue
		}
		m := modules[name[:at]]
		m.table = strings.HasPrefix(last, "lora_embedding_")
		if place := map[bool]**Tensor{true: &m.a, false: &m.b}[strings.HasSuffix(last, "A")]; *place == nil {
			*place = t
		} else {
			f.addf(t.Name, "is there twice")
		}
		modules[name[:at]] = m
	}
	return modules
}

// isBase says whether a tensor is one that PEFT saves beside an adapter of the embedding or the head: the base model's
// own. It is no change.
func isBase(name string) bool {
	name = strings.TrimSuffix(name, ".base_layer")
	last := name[strings.LastIndexByte(name, '.')+1:]
	return slices.Contains([]string{"embed_tokens", "lm_head", "tok_embeddings", "wte", "embed_in", "embed_out", "output"}, last)
}

func (m *module) changes(module string, scale float32, named func(string, int) ([]Named, error)) ([]Change, error) {
	if m.table { // B makes features, which all tokens have in one order
		all, err := named(module, m.a.Shape[1])
		if err == nil && len(all) != 1 {
			err = errors.New("is no table of embeddings of the model")
		}
		if err != nil {
			return nil, err
		}
		return []Change{{Matrix: all[0].Matrix, Scale: scale, A: *m.a, B: *m.b}}, nil
	}
	all, err := named(module, m.b.Shape[0])
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, n := range all {
		c := Change{Matrix: n.Matrix, Scale: scale, A: *m.a, B: *m.b}
		for i, row := range n.Rows {
			if row < 0 || row >= m.b.Shape[0] {
				return nil, fmt.Errorf("row %d of %d would be row %d", row, m.b.Shape[0], i)
			}
		}
		if c.Rows = n.Rows; isWhole(n.Rows, m.b.Shape[0]) {
			c.Rows = nil
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// isWhole says whether rows are all of so many, in order.
func isWhole(rows []int, n int) bool {
	for i, row := range rows {
		if row != i {
			return false
		}
	}
	return len(rows) == n
}
