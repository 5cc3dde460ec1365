package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/meta"
)

// Matrix is a matrix of a file, whose rows are rows of the weight of a module of the folder that it came from.
type Matrix struct {
	Name string // without .weight
	Rows []int  // of the module's weight, in the order of the file
}

// ModuleMatrices says which matrices of a file with metadata m a module's weight of so many rows became, such as
// model.layers.0.self_attn.q_proj. What adapters change in the module's results is arranged alike.
func ModuleMatrices(m *meta.Map, module string, rows int) ([]Matrix, error) {
	arch, err := m.String("general.architecture")
	if err != nil {
		return nil, err
	}
	all := families()
	i := slices.IndexFunc(all, func(f family) bool { return f.arch == arch })
	if i < 0 {
		return nil, fmt.Errorf("how folders of %.40q name their modules is not known here: convert the adapter to GGUF first", arch)
	}
	c := &converter{config: configOf(m, arch), family: &all[i], meta: new(meta.Map), byName: map[string]*output{}}
	key, _, numbers := keyOf(module, c.family.prefixes)
	rules := c.family.table()
	suffix := ".weight"
	r, ok := rules[key+suffix]
	if ok {
		suffix = ""
	} else {
		r, ok = rules[key]
	}
	if !ok || r.to == "" || len(numbers) > 1 || len(numbers) == 1 && numbers[0] >= c.layers() {
		return nil, fmt.Errorf("%s has no such module that adapters can change", arch)
	}
	s := &source{Tensor: element.Tensor{Name: module + ".weight", Type: element.F32, Shape: []int{rows, 1}}, layer: -1, expert: -1}
	if len(numbers) > 0 {
		s.layer = numbers[0]
	}
	s.to = strings.Replace(r.to, "*", strconv.Itoa(s.layer), 1) + suffix
	if err := c.apply(r, s); err != nil {
		return nil, err
	}
	if err := c.config.err(); err != nil {
		return nil, err
	}
	return c.matrices()
}

// matrices lists the rows that the views of each output walk through; the walked tensor has one column.
func (c *converter) matrices() (all []Matrix, err error) {
	for _, o := range c.out {
		name, ok := strings.CutSuffix(o.name, ".weight")
		if !ok || o.change != Same || o.scales != nil {
			return nil, fmt.Errorf("becomes %.120q, which is no matrix that adapters can change", o.name)
		}
		x := Matrix{Name: name}
		for _, p := range o.parts {
			for _, v := range p.views {
				if v.Factors != nil || len(o.shape) != 2 || o.shape[1] != 1 {
					return nil, fmt.Errorf("becomes %.120q, whose columns are others: convert the adapter to GGUF first", o.name)
				}
				_, run := v.Runs()
				_ = v.Walk(func(at int64) error {
					for i := range run {
						x.Rows = append(x.Rows, int(at+i))
					}
					return nil
				})
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// configOf is what rules ask of config.json, from the metadata that it became.
func configOf(m *meta.Map, arch string) object {
	o, _ := parseObject("the model's metadata", nil)
	for key, name := range map[string]string{"block_count": "num_hidden_layers", "attention.head_count": "num_attention_heads",
		"attention.head_count_kv": "num_key_value_heads", "embedding_length": "hidden_size", "attention.key_length": "head_dim"} {
		if n, err := m.Int(arch + "." + key); err == nil {
			o.values[name] = json.Number(strconv.FormatInt(n, 10))
		}
	}
	return o
}
