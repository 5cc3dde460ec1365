package convert_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// FuzzPlan checks that no configuration or tokenizer panics, and that what is planned lies within the tensors.
func FuzzPlan(f *testing.F) {
	all, _ := converttest.Folders(f)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		f.Add(i, converttest.Config(f, name), []byte(`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}`), []byte(`{}`),
			[]byte("\n\x03\n\x01a"))
	}
	f.Fuzz(func(t *testing.T, which int, config, tokenizer, settings, pieces []byte) {
		folder := &convert.Folder{Name: "x", Texts: map[string][]byte{
			"config.json": config, "tokenizer.json": tokenizer, "tokenizer_config.json": settings}}
		if which >= 0 && which < len(names) {
			folder.Tensors = all[names[which]]
		}
		if len(pieces) > 0 {
			folder.Texts["tokenizer.model"] = pieces
		}
		plan, err := convert.Plan(folder, convert.Options{Pre: "gpt-2"})
		if err != nil {
			return
		}
		for i := range plan.Tensors {
			for _, v := range slices.Concat(plan.Tensors[i].Views, plan.Tensors[i].Scales) {
				n, err := v.Source.Count()
				require.NoError(t, err)
				last := v.Offset
				for _, d := range v.Dims {
					last += (d.N - 1) * d.Stride
				}
				require.GreaterOrEqual(t, v.Offset, int64(0))
				require.Less(t, last, n)
			}
		}
	})
}
