package convert_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestT5Vocabulary: spiece.model and tokenizer.json become the vocabulary that a reference was computed with.
func TestT5Vocabulary(t *testing.T) {
	f, err := gguf.Parse("ugm-own.gguf", testref.Vocab(t, "ugm-own"))
	require.NoError(t, err)
	texts, err := f.Meta.Strings("tokenizer.ggml.tokens")
	require.NoError(t, err)
	scores, err := f.Meta.Floats("tokenizer.ggml.scores")
	require.NoError(t, err)
	kinds, err := f.Meta.Ints("tokenizer.ggml.token_type")
	require.NoError(t, err)
	charsmap, err := f.Meta.Bytes("tokenizer.ggml.precompiled_charsmap")
	require.NoError(t, err)

	var model []byte
	field := func(dst []byte, number int, value []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(number)<<3|2)
		return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
	}
	vocab, added := make([][2]any, len(texts)), []map[string]any{}
	for i, text := range texts {
		p := append(field(nil, 1, []byte(text)), 2<<3|5)
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(float32(scores[i])))
		model = field(model, 1, append(p, 3<<3, byte(kinds[i])))
		vocab[i] = [2]any{text, scores[i]}
		if kinds[i] == 3 || kinds[i] == 4 {
			added = append(added, map[string]any{"id": i, "content": text, "special": kinds[i] == 3})
		}
	}
	model = field(model, 2, []byte{3 << 3, 1})
	model = field(model, 3, field(nil, 2, charsmap))
	file, err := json.Marshal(map[string]any{"added_tokens": added, "model": map[string]any{"type": "Unigram", "unk_id": 2, "vocab": vocab},
		"normalizer": map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(charsmap)}}}})
	require.NoError(t, err)

	for name, text := range map[string][]byte{"spiece.model": model, "tokenizer.json": file} {
		m, err := convert.T5Vocabulary(map[string][]byte{name: text})
		require.NoError(t, err)
		v, err := token.New(m)
		require.NoError(t, err)
		reference, compared := unigramCases(t), 0
		for _, c := range reference {
			if c.ids == nil {
				continue
			}
			ids, err := v.Encode([]token.ID{}, c.text, token.Options{})
			require.NoError(t, err)
			require.Equal(t, c.ids, ids, "%s: %q", name, c.text)
			compared++
		}
		require.Greater(t, compared, 100)
		ids, err := v.Encode(nil, "a", token.Options{AddSpecial: true})
		require.NoError(t, err)
		require.Equal(t, token.ID(1), ids[len(ids)-1], "</s> ends a text")
		wide, err := v.Encode(nil, "Ａｂ ﬁ", token.Options{})
		require.NoError(t, err)
		plain, err := v.Encode(nil, "Ab fi", token.Options{})
		require.NoError(t, err)
		require.Equal(t, plain, wide, "characters are replaced, by %s", name)
	}
}

type unigramCase struct {
	text string
	ids  []token.ID // nil: the reference gives up
}

// unigramCases are the texts of the reference folder with their ids in the vocabulary ugm-own.
func unigramCases(t *testing.T) (all []unigramCase) {
	t.Helper()
	folder := filepath.Join(testref.Dir(t), "vocab")
	var texts []struct {
		Text string
		B64  []byte
	}
	data, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &texts))
	data, err = os.ReadFile(filepath.Join(folder, "ugm-own.json.gz"))
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	var reference struct {
		Cases []struct{ IDs json.RawMessage }
	}
	require.NoError(t, json.NewDecoder(r).Decode(&reference))
	require.Len(t, reference.Cases, len(texts))
	for i, c := range reference.Cases {
		one := unigramCase{text: texts[i].Text}
		if texts[i].B64 != nil {
			one.text = string(texts[i].B64)
		}
		if json.Unmarshal(c.IDs, &one.ids) != nil {
			one.ids = nil
		}
		all = append(all, one)
	}
	return all
}

// clipFiles are a tokenizer of CLIP's kind in its two spellings.
func clipFiles() (old, whole map[string][]byte) {
	old = map[string][]byte{"merges.txt": []byte("#version: 0.2\r\na b</w>\r\n"),
		"vocab.json": []byte(`{"a": 0, "b</w>": 1, "ab</w>": 2, "a</w>": 3, "<|startoftext|>": 4, "<|endoftext|>": 5}`)}
	whole = map[string][]byte{"tokenizer.json": []byte(`{"added_tokens": [{"id": 4, "content": "<s>"}, {"id": 5, "content": "</s>"}],
		"model": {"type": "BPE", "merges": [["a", "b</w>"]], "vocab": {"a": 0, "b</w>": 1, "ab</w>": 2, "a</w>": 3}}}`),
		"tokenizer_config.json": []byte(`{"bos_token": "<s>", "eos_token": {"content": "</s>"}}`)}
	return old, whole
}

func TestClipVocabulary(t *testing.T) {
	old, whole := clipFiles()
	for _, files := range []map[string][]byte{old, whole} {
		m, err := convert.ClipVocabulary(files)
		require.NoError(t, err)
		v, err := token.New(m)
		require.NoError(t, err)
		ids, err := v.Encode(nil, "AB a aab", token.Options{AddSpecial: true})
		require.NoError(t, err)
		require.Equal(t, []token.ID{4, 2, 3, 0, 2, 5}, ids)
		require.True(t, v.IsControl(4) && v.IsControl(5), "no text spells the ends")
	}
}

// TestPromptVocabularies: what is wrong with a tokenizer's files is said.
func TestPromptVocabularies(t *testing.T) {
	unigram := []byte("\n\x05\n\x03abc")
	for _, c := range []struct {
		t5    bool
		files map[string]string
		want  string
	}{
		{false, nil, "has neither vocab.json nor tokenizer.json"},
		{false, map[string]string{"tokenizer.json": `{}`}, "tokenizer.json: vocab: unexpected end of JSON input"},
		{false, map[string]string{"vocab.json": `{"a": "b"}`}, "vocab.json: json: cannot unmarshal string"},
		{false, map[string]string{"vocab.json": `{"a": 0}`}, `no token "<|startoftext|>", with a number below 1`},
		{false, map[string]string{"vocab.json": `{"<|startoftext|>": 7}`}, `no token "<|startoftext|>", with a number below 1`},
		{true, nil, `no spiece.model, and tokenizer.json has a model of type ""`},
		{true, map[string]string{"tokenizer.json": `{"model": {"type": "Unigram", "vocab": [["a"]]}}`}, "token 0 is no text with a score"},
		{true, map[string]string{"spiece.model": ""}, "spiece.model: holds no tokens: is it a SentencePiece model"},
		{true, map[string]string{"spiece.model": string(unigram) + "\x12\x02\x18\x02"}, "is not of the kind that finds the likeliest pieces"},
	} {
		files := map[string][]byte{}
		for name, text := range c.files {
			files[name] = []byte(text)
		}
		read := convert.ClipVocabulary
		if c.t5 {
			read = convert.T5Vocabulary
		}
		_, err := read(files)
		require.ErrorContains(t, err, c.want)
	}
}

// FuzzPromptVocabularies: no tokenizer's file panics, and what is read makes a vocabulary or an error.
func FuzzPromptVocabularies(f *testing.F) {
	old, whole := clipFiles()
	f.Add(old["vocab.json"], old["merges.txt"], []byte(nil), []byte(nil))
	f.Add([]byte(nil), []byte(nil), whole["tokenizer.json"], whole["tokenizer_config.json"])
	f.Add([]byte("\n\x0a\n\x03abc\x15\x00\x00\x00\x00"), []byte("a b"), []byte(`{"model": {"type": "Unigram", "vocab": [["a", 1]]}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, first, merges, file, settings []byte) {
		files := map[string][]byte{"merges.txt": merges, "tokenizer.json": file, "tokenizer_config.json": settings}
		if len(first) > 0 {
			files["vocab.json"], files["spiece.model"] = first, first
		}
		if m, err := convert.ClipVocabulary(files); err == nil {
			if v, err := token.New(m); err == nil {
				_, err = v.Encode(nil, string(merges), token.Options{AddSpecial: true})
				require.NoError(t, err)
			}
		}
		if m, err := convert.T5Vocabulary(files); err == nil {
			if v, err := token.New(m); err == nil {
				v.Encode(nil, string(merges), token.Options{AddSpecial: true}) // a damaged map is an error
			}
		}
	})
}
