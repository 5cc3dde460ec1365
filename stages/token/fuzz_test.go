package token_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/token"
)

// FuzzEncode: any bytes, in any mode, on every kind of vocabulary: no panic, valid text comes back from those that can
// spell it, and a stream gives what Decode gives, in whole characters.
func FuzzEncode(f *testing.F) {
	exact := exactVocabs(f)
	names := []string{"bytes", "sentencepiece", "embedded", "world"}
	lossy := []*token.Vocab{mustNew(f, wordPieces()), mustNew(f, unigrams()), mustNew(f, clips(readClip(f).Merges))}
	for i, text := range []string{"hello <tool>", "<|end|>aaaa\n\n", "\xf0\x9f\x98", "\xed\xa0\x80\xc0\x80", "\xf7\xbf\xbf\xbf", "▁a é e\u0301", "\v\x00"} {
		f.Add([]byte(text), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		text, o := string(data), token.Options{AddSpecial: mode&1 != 0, ParseSpecial: mode&2 != 0}
		for _, v := range lossy {
			ids, err := v.Encode(nil, text, o)
			require.NoError(t, err)
			requireStream(t, v, ids, mode&4 != 0)
		}
		for _, name := range names {
			v := exact[name]
			ids, err := v.Encode(nil, text, o)
			require.NoError(t, err)
			requireStream(t, v, ids, mode&4 != 0)
			if bos, ok := v.BOS(); ok && o.AddSpecial {
				require.Equal(t, bos, ids[0])
				ids = ids[1:]
			}
			spelt := name != "sentencepiece" || !bytes.Contains(data, []byte("\u2581"))
			if utf8.Valid(data) && spelt {
				require.Equal(t, text, string(v.Decode(nil, ids, true)), name)
			}
		}
	})
}

func mustNew(t require.TestingT, m *meta.Map) *token.Vocab {
	v, err := token.New(m)
	require.NoError(t, err)
	return v
}

// wordPieces is a BERT vocabulary.
func wordPieces() *meta.Map {
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "bert")
	m.Set("tokenizer.ggml.tokens", []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁hello", "▁he", "llo", "▁a", "a", "▁.", "▁中", "▁e"})
	m.Set("tokenizer.ggml.token_type", []int32{3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1})
	m.Set("tokenizer.ggml.unknown_token_id", uint32(1))
	m.Set("tokenizer.ggml.bos_token_id", uint32(2))
	m.Set("tokenizer.ggml.seperator_token_id", uint32(3))
	return m
}

// unigrams is a T5 vocabulary, whose character map turns "A" into "a" and "é" into "e".
func unigrams() *meta.Map {
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "t5")
	m.Set("tokenizer.ggml.tokens", []string{"<pad>", "</s>", "<unk>", "▁", "▁a", "a", "hello", "▁hello", "e", "<tool>"})
	m.Set("tokenizer.ggml.token_type", []int32{3, 3, 2, 1, 1, 1, 1, 1, 1, 4})
	m.Set("tokenizer.ggml.scores", []float32{0, 0, 0, -2, -2, -3, -4, -3, -5, 0})
	m.Set("tokenizer.ggml.add_space_prefix", true)
	m.Set("tokenizer.ggml.remove_extra_whitespaces", true)
	m.Set("tokenizer.ggml.precompiled_charsmap", charsMap(map[string]string{"A": "a", "é": "e"}))
	return m
}

// charsMap builds a precompiled_charsmap: a double array with 256 units for each node, and the replacements.
func charsMap(replace map[string]string) []byte {
	const block, leaf = 256, 1 << 8
	units := make([]uint32, block)
	base := map[string]uint32{"": 0} // of each prefix: where its children are
	grow := func(prefix string) uint32 {
		if _, ok := base[prefix]; !ok {
			base[prefix] = uint32(len(units))
			units = append(units, make([]uint32, block)...) //nolint:makezero // the first block is the root's
		}
		return base[prefix]
	}
	var keys []string
	for key := range replace {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var texts []byte
	for _, key := range keys {
		for i := range len(key) {
			at := grow(key[:i]) ^ uint32(key[i])
			units[at] = units[at]&leaf | uint32(key[i]) | (at^grow(key[:i+1]))<<10
		}
		end := base[key[:len(key)-1]] ^ uint32(key[len(key)-1])
		units[end] |= leaf
		units[base[key]] = 1<<31 | uint32(len(texts))
		texts = append(append(texts, replace[key]...), 0)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return append(out, texts...)
}

// FuzzNew: any metadata gives a vocabulary that works, or an error; never a panic.
func FuzzNew(f *testing.F) {
	for i := range uint8(8) {
		f.Add(i, []byte("a\x00b\x00ab\x00<0x41>\x00▁\x00<s>\x00</s>"), []byte("a b\x00ab"), []byte{1, 1, 1, 6, 1, 3, 3}, []byte{4, 0, 0, 0, 1, 2, 3, 4, 65, 0})
	}
	f.Fuzz(func(t *testing.T, kind uint8, tokens, merges, types, charsmap []byte) {
		if len(tokens)+len(merges)+len(charsmap) > 1<<14 {
			return // what is larger takes long and shows nothing else
		}
		m := hostile(kind, tokens, merges, types, charsmap)
		v, err := token.New(m)
		if err != nil {
			return
		}
		for _, text := range []string{"", "ab a", "<s>a</s>", string(tokens), string(charsmap)} {
			ids, err := v.Encode(nil, text, token.Options{AddSpecial: true, ParseSpecial: kind&16 != 0})
			if err != nil {
				continue
			}
			for _, id := range ids {
				require.True(t, id >= 0 && int(id) < v.Size(), "token %d of %d", id, v.Size())
			}
			requireStream(t, v, ids, true)
		}
	})
}

// hostile makes metadata of bytes: types double as scores and special ids.
func hostile(kind uint8, tokens, merges, types, charsmap []byte) *meta.Map {
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", []string{"gpt2", "llama", "t5", "bert", "gemma4", "rwkv"}[kind%6])
	m.Set("tokenizer.ggml.pre", []string{"", "tekken", "afmoe", "gpt-4o", "kimi-k2"}[kind/5%5])
	m.Set("tokenizer.ggml.tokens", split(tokens))
	m.Set("tokenizer.ggml.merges", split(merges))
	if kind&32 == 0 {
		m.Set("tokenizer.ggml.token_type", types)
	}
	scores := make([]float32, len(types))
	for i, b := range types {
		scores[i] = math.Float32frombits(uint32(b)<<24 | uint32(b))
	}
	m.Set("tokenizer.ggml.scores", scores)
	m.Set("tokenizer.ggml.precompiled_charsmap", charsmap)
	for i, key := range []string{"bos_token_id", "eos_token_id", "unknown_token_id", "seperator_token_id", "fim_pad_token_id"} {
		if i < len(types) && kind&64 != 0 {
			m.Set("tokenizer.ggml."+key, int32(int8(types[i])))
		}
	}
	m.Set("tokenizer.ggml.add_space_prefix", kind&128 != 0)
	return m
}

func split(data []byte) []string {
	var out []string
	for _, part := range bytes.Split(data, []byte{0}) {
		out = append(out, string(part))
	}
	return out
}
