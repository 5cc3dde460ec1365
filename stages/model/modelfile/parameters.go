package modelfile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/nearest"
)

// Parameter is a value that a model runs with where a request sets none.
type Parameter struct {
	Name   string
	Number float64  // of all but stop
	Texts  []string // of stop
}

// Parameters are parameters of different names.
type Parameters []Parameter

// rule says what a parameter may be, and where the engine finds it.
type rule struct {
	name        string
	whole       bool // it is an integer
	least, most float64
	key         string // of the metadata
}

// stopName is the parameter of texts that end an answer.
const stopName = "stop"

// rules lists the parameters whose values are numbers. The bounds are those of requests.
func rules() []rule {
	const large = math.MaxInt32
	return []rule{
		{"temperature", false, 0, 100, "general.sampling.temp"},
		{"top_k", true, -1, large, "general.sampling.top_k"},
		{"top_p", false, 0, 1, "general.sampling.top_p"},
		{"min_p", false, 0, 1, "general.sampling.min_p"},
		{"typical_p", false, 0, 1, "general.sampling.typical_p"},
		{"repeat_penalty", false, 0.01, 100, "general.sampling.penalty_repeat"},
		{"repeat_last_n", true, -1, large, "general.sampling.penalty_last_n"},
		{"frequency_penalty", false, -100, 100, "general.sampling.penalty_frequency"},
		{"presence_penalty", false, -100, 100, "general.sampling.penalty_presence"},
		{"mirostat", true, 0, 2, "general.sampling.mirostat"},
		{"mirostat_tau", false, 0, 100, "general.sampling.mirostat_tau"},
		{"mirostat_eta", false, 0, 1, "general.sampling.mirostat_eta"},
		{"seed", true, -1, 1 << 53, "general.sampling.seed"},
		{"num_predict", true, -2, large, keyPredict},
		{"num_ctx", true, 0, large, keyContext},
	}
}

// ofLoading are parameters that say how a model is to be loaded. They are read and change nothing: that is said when
// the program starts.
func ofLoading() []string {
	return []string{"num_gpu", "num_batch", "num_thread", "num_keep", "main_gpu", "use_mmap", "use_mlock", "low_vram",
		"f16_kv", "vocab_only", "logits_all", "numa", "penalize_newline", "tfs_z",
		"draft_num_predict"}
}

const (
	mostStops     = 16 // as of requests
	mostStopBytes = 1024
)

// find returns the rule of a name; nil for stop, and for parameters that change nothing.
func find(name string) (*rule, error) {
	all := rules()
	names := append(ofLoading(), stopName)
	for i := range all {
		if all[i].name == name {
			return &all[i], nil
		}
		names = append(names, all[i].name)
	}
	if slices.Contains(names, name) {
		return nil, nil //nolint:nilnil // there is none
	}
	return nil, fmt.Errorf("%.40q is no parameter: %s", name, nearest.Word(name, names))
}

// number checks a value of the parameter.
func (r *rule) number(x float64) error {
	kind := "a number"
	if r.whole {
		kind = "an integer"
	}
	if x >= r.least && x <= r.most && (!r.whole || x == math.Trunc(x)) && (r.name != "mirostat" || x != 1) {
		return nil
	}
	return fmt.Errorf("%s is %s: want %s from %s to %s", r.name, spell(x), kind, spell(r.least), spell(r.most))
}

func spell(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// set adds a parameter. Stop may be said several times, of others the last one counts.
func (p *Parameters) set(name string, x float64, texts ...string) error {
	r, err := find(name)
	if err != nil {
		return err
	}
	if r != nil {
		if err := r.number(x); err != nil {
			return err
		}
	} else if name != stopName {
		return nil
	}
	at := slices.IndexFunc(*p, func(q Parameter) bool { return q.Name == name })
	if at < 0 {
		at = len(*p)
		*p = append(*p, Parameter{Name: name})
	}
	one := &(*p)[at]
	one.Number = x
	for _, text := range texts {
		if text == "" || len(text) > mostStopBytes {
			return fmt.Errorf("stop has a text of %d bytes: want 1 to %d", len(text), mostStopBytes)
		}
		one.Texts = append(one.Texts, text)
	}
	if len(one.Texts) > mostStops {
		return fmt.Errorf("stop has more than %d texts: want fewer", mostStops)
	}
	return nil
}

// setText adds a parameter as a Modelfile spells it.
func (p *Parameters) setText(name, value string) error {
	r, err := find(name)
	switch {
	case err != nil:
		return err
	case name == stopName:
		return p.set(name, 0, value)
	case r == nil:
		return nil
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(x) {
		return fmt.Errorf("%s is %.40q: want a number from %s to %s", name, value, spell(r.least), spell(r.most))
	}
	return p.set(name, x)
}

// ParseParameters reads parameters from a JSON object, such as {"temperature": 0.7, "stop": ["END"]}.
func ParseParameters(text string) (p Parameters, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, fmt.Errorf(`parameters: want an object such as {"temperature": 0.7}: %w`, err)
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := p.setJSON(name, members[name]); err != nil {
			return nil, fmt.Errorf("parameters: %w", err)
		}
	}
	return p, nil
}

// KnownParameters reads from a JSON object the parameters that mean something here, and skips the others: another
// program may have written it.
func KnownParameters(text string) (p Parameters) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return nil
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		before := slices.Clone(p)
		if p.setJSON(name, members[name]) != nil {
			p = before
		}
	}
	return p
}

func (p *Parameters) setJSON(name string, raw json.RawMessage) error {
	r, err := find(name)
	if err != nil {
		return err
	}
	if r != nil {
		var x *float64
		if err := json.Unmarshal(raw, &x); err != nil {
			return fmt.Errorf("%s is %.40s: want a number from %s to %s", name, raw, spell(r.least), spell(r.most))
		}
		if x == nil {
			return nil
		}
		return p.set(name, *x)
	}
	if name != stopName {
		return nil
	}
	texts, one := []string{}, ""
	if json.Unmarshal(raw, &one) == nil && one != "" {
		texts = []string{one}
	} else if err := json.Unmarshal(raw, &texts); err != nil {
		return fmt.Errorf("stop is %.40s: want a text, or a list of texts", raw)
	}
	if len(texts) == 0 {
		return nil
	}
	return p.set(name, 0, texts...)
}

// JSON is the parameters as ParseParameters reads them.
func (p Parameters) JSON() []byte {
	members := map[string]any{}
	for _, one := range p {
		if members[one.Name] = one.Number; one.Name == stopName {
			members[one.Name] = one.Texts
		}
	}
	text, _ := json.Marshal(members) // numbers are finite, and texts are texts
	return text
}

// Over returns the parameters with others added; where both have a name, these count.
func (p Parameters) Over(others Parameters) Parameters {
	all := slices.Clone(p)
	for _, other := range others {
		if !slices.ContainsFunc(p, func(q Parameter) bool { return q.Name == other.Name }) {
			all = append(all, other)
		}
	}
	return all
}

// apply writes the parameters to the keys of the metadata where the engine looks for them.
func (p Parameters) apply(m *meta.Map) {
	for _, one := range p {
		r, _ := find(one.Name)
		switch {
		case r == nil:
			m.Set(keyStop, one.Texts)
		case r.whole:
			m.Set(r.key, int64(one.Number))
		default:
			m.Set(r.key, float32(one.Number))
		}
	}
}

// lines spells parameters as a Modelfile does, but for the instruction.
func (p Parameters) lines() (all []string) {
	for _, one := range p {
		if one.Name != stopName {
			all = append(all, one.Name+" "+spell(one.Number))
		}
		for _, text := range one.Texts {
			all = append(all, one.Name+" "+quoted(text))
		}
	}
	return all
}

// Lines is the parameters as the answer of POST /api/show has them.
func (p Parameters) Lines() string { return strings.Join(p.lines(), "\n") }
