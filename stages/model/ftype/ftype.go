// Package ftype knows llama.cpp's file types: names such as Q4_K_M that stand for a type for every tensor.
//
// A file type has a base type, and rules that give more bits where they help most: to values, to the second half of
// the feed-forward, to the output. Types applies them to the tensors of a model, known by name and shape; nothing
// here touches data. What a type's bytes are is for internal/quant to know, writing files is storage's business.
//
// Source of the rules: llama-quant.cpp of llama.cpp, v0.5.0; TestTypesAsLlamaCpp compares with its files.
package ftype

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Type is one file type. There is one of each, in the table of this package, and nobody changes it.
type Type struct {
	Name     string     // as people type it: Q4_K_M
	FileType uint32     // as files store it, under general.file_type
	Base     quant.Type // of tensors for which no rule speaks
	rules    rules
}

// Tensor is what the rules see of a tensor.
type Tensor struct {
	Name  string
	Type  quant.Type // at present; what is not quantised keeps it
	Shape []int      // Shape[0] is the length of a row
}

// Options change what a file type does. The zero value changes nothing.
type Options struct {
	Pure        bool        // the base type everywhere, no rules
	LeaveOutput bool        // the output matrix stays as it is, if it is not the embeddings too
	Output      *quant.Type // of the output matrix, if not nil
	Embed       *quant.Type // of the token embeddings, if not nil
	Overrides   []Override  // the first that matches a name decides, before the rules
	Importance  bool        // an importance matrix will be used: some rules exist to make up for its absence
}

// Override gives a type to the tensors whose names match.
type Override struct {
	Pattern *regexp.Regexp
	Type    quant.Type
}

// Find returns the file type of that name, in either case. Q3_K, Q4_K, Q5_K and MXFP4 stand for their usual variants.
func Find(name string) (*Type, bool) {
	for short, long := range aliases {
		if strings.EqualFold(name, short) {
			name = long
		}
	}
	for i := range fileTypes {
		if strings.EqualFold(fileTypes[i].Name, name) {
			return &fileTypes[i], true
		}
	}
	return nil, false
}

// Name is what people type for the file type that files store as n.
func Name(n int64) (name string, ok bool) {
	at := slices.IndexFunc(fileTypes[:], func(ft Type) bool { return int64(ft.FileType) == n })
	if at < 0 {
		return "", false
	}
	return fileTypes[at].Name, true
}

// Names lists all file types, from many bits to few.
func Names() []string {
	var names []string
	for i := range fileTypes {
		names = append(names, fileTypes[i].Name)
	}
	return names
}

// Types says which type each tensor gets, in the order given. Where rows do not fill whole blocks of the type that
// the rules want, it is the nearest one that fits. An override that decides nothing is an error.
func (ft *Type) Types(model *meta.Map, tensors []Tensor, o Options) ([]quant.Type, error) {
	f, err := readFacts(model, tensors, o)
	if err != nil {
		return nil, err
	}
	types := make([]quant.Type, len(tensors))
	names := make([]string, len(tensors))
	for i := range tensors {
		names[i] = tensors[i].Name
	}
	count := counts{overridden: make([]int, len(o.Overrides))}
	for _, i := range Order(names) { // rules that count tensors count in this order
		types[i] = ft.typeOf(&tensors[i], f, &o, &count)
	}
	if i := slices.Index(count.overridden, 0); i >= 0 {
		return nil, fmt.Errorf("pattern %q: decides the type of no tensor: norms and other small ones stay as they are, "+
			"and the first pattern that matches a name counts", o.Overrides[i].Pattern)
	}
	return types, nil
}

// counts are how many tensors there have been so far.
type counts struct {
	seen       [kinds]int // that rules decided, by kind
	overridden []int      // by override
}

func (ft *Type) typeOf(t *Tensor, f *facts, o *Options, count *counts) quant.Type {
	kind := kindOf(t.Name)
	if stays(t) || o.LeaveOutput && kind == output {
		return t.Type
	}
	if kind == embed && f.tied && o.Embed == nil {
		kind = output // the matrix serves as both: as the output it needs more bits
	}
	want := ft.Base
	switch i := slices.IndexFunc(o.Overrides, func(v Override) bool { return v.Pattern.MatchString(t.Name) }); {
	case kind == embed && o.Embed != nil:
		want = *o.Embed
	case kind == output && o.Output != nil:
		want = *o.Output
	case i >= 0:
		want = o.Overrides[i].Type
		count.overridden[i]++
	case !o.Pure:
		want = ft.choose(&role{facts: f, tensor: t, kind: kind, index: count.seen[kind]})
		count.seen[kind]++
	}
	return fit(want, t.Shape[0])
}

// NeedsImportance says whether a tensor is useless at that type unless an importance matrix guided its quantiser.
func (ft *Type) NeedsImportance(name string, t quant.Type) bool {
	if kind := kindOf(name); kind == embed || kind == output {
		return false
	}
	switch t {
	case quant.IQ3_XXS, quant.IQ2_XXS, quant.IQ2_XS, quant.IQ2_S, quant.IQ1_M, quant.IQ1_S:
		return true
	case quant.Q2_K:
		return ft.Name == "Q2_K_S"
	}
	return false
}

// Meta returns the metadata of a model after quantisation: one file, of this type.
func (ft *Type) Meta(source *meta.Map) *meta.Map {
	const quantizationVersion = 2 // of the block layouts; ggml has changed them twice
	stamp := new(meta.Map)
	stamp.Set("general.quantization_version", uint32(quantizationVersion))
	stamp.Set("general.file_type", ft.FileType)
	result := new(meta.Map)
	for _, key := range source.Keys() {
		if v, _ := source.Get(key); !stamp.Has(key) && !strings.HasPrefix(key, "split.") {
			result.Set(key, v)
		}
	}
	for _, key := range stamp.Keys() {
		v, _ := stamp.Get(key)
		result.Set(key, v)
	}
	return result
}

// Order lists the indexes of tensors in the order in which llama.cpp stores them: what belongs to no layer, then
// layer by layer; by name within.
func Order(names []string) []int {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(layerOf(names[a]), layerOf(names[b])), strings.Compare(names[a], names[b]))
	})
	return order
}
