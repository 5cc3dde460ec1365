package token_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"index/suffixarray"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/stretchr/testify/require"
)

// vocabularies of the reference folder that have a GGUF.
var vocabularies = []string{
	"baichuan", "bert-bge", "deepseek-coder", "deepseek-llm", "falcon", "gemma-bpe-cut", "gpt-2", "llama-bpe", "llama-spm",
	"mpt", "o200k-cut", "phi-3", "qwen2", "refact", "spm-nospace", "starcoder", "ugm-own",
}

// unpacked remembers files and what New made of them: several tests want the same.
var unpacked struct {
	sync.Mutex
	metas  map[string]*meta.Map
	vocabs map[string]*token.Vocab
}

func metaOf(t testing.TB, name string) *meta.Map {
	t.Helper()
	unpacked.Lock()
	defer unpacked.Unlock()
	if m, ok := unpacked.metas[name]; ok {
		return m
	}
	f, err := gguf.Parse(name+".gguf", testref.Vocab(t, name))
	require.NoError(t, err)
	if unpacked.metas == nil {
		unpacked.metas = map[string]*meta.Map{}
	}
	unpacked.metas[name] = &f.Meta
	return &f.Meta
}

func vocabOf(t testing.TB, name string) *token.Vocab {
	t.Helper()
	m := metaOf(t, name)
	unpacked.Lock()
	defer unpacked.Unlock()
	if v, ok := unpacked.vocabs[name]; ok {
		return v
	}
	v, err := token.New(m)
	require.NoError(t, err)
	if unpacked.vocabs == nil {
		unpacked.vocabs = map[string]*token.Vocab{}
	}
	unpacked.vocabs[name] = v
	return v
}

// text is one entry of cases.json.
type text struct {
	Name string
	Text string
	B64  []byte
}

func (c text) bytes() string {
	if c.B64 != nil {
		return string(c.B64)
	}
	return c.Text
}

func texts(t testing.TB) []text {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testref.Dir(t), "vocab", "cases.json"))
	require.NoError(t, err)
	var out []text
	require.NoError(t, json.Unmarshal(data, &out))
	require.Len(t, out, 178)
	return out
}

// ids are token ids, or null where the reference gave up.
type ids []token.ID

func (x *ids) UnmarshalJSON(data []byte) error {
	*x = nil
	if bytes.HasPrefix(data, []byte("{")) {
		return nil
	}
	return json.Unmarshal(data, (*[]token.ID)(x))
}

// reference is NAME.json.gz.
type reference struct {
	Info struct {
		Type                   string
		N                      int `json:"n_tokens"`
		BOS, EOS               token.ID
		EOG                    []token.ID
		Control                [][2]token.ID  `json:"control_ranges"`
		AttrCounts             map[string]int `json:"attr_counts"`
		AddBOS, AddEOS, AddSEP int
	}
	AddPrefix []token.ID        `json:"add_prefix"`
	AddSuffix []token.ID        `json:"add_suffix"`
	Pieces    map[string]string `json:"pieces_sha256"`
	Cases     []struct {
		Name       string
		IDs        ids
		IDsSpecial *ids   `json:"ids_special"`
		IDsAdd     *ids   `json:"ids_add"`
		Detok      []byte `json:"detok_b64"`
		DetokSHA   string `json:"detok_sha256"`
	}
}

func readGzip(t testing.TB, name string, into any) {
	t.Helper()
	f, err := os.Open(filepath.Join(testref.Dir(t), "vocab", name))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(z).Decode(into))
}

func referenceOf(t testing.TB, name string) *reference {
	t.Helper()
	r := new(reference)
	readGzip(t, name+".json.gz", r)
	require.Len(t, r.Cases, 178)
	return r
}

// forged are the texts in which llama.cpp lets plain text form control tokens, by vocabulary. It makes <|start|>,
// <|channel|>, <|message|>, <|constrain|> and <|end|> of gpt-oss user-defined so that they are shown, and user-defined
// tokens are recognised whether special tokens are parsed or not: a user could open a message of any role. Ours shows
// them too, and recognises them only where special tokens are parsed.
var forged = map[string][]string{
	"o200k-cut": {"special.phi3", "special.harmony", "special.adjacent", "long.mixed_20k"},
}

// TestReferenceIDs compares ids with llama.cpp's, for all vocabularies, texts and ways to encode.
func TestReferenceIDs(t *testing.T) {
	cases := texts(t)
	for _, name := range vocabularies {
		t.Run(name, func(t *testing.T) {
			v, ref := vocabOf(t, name), referenceOf(t, name)
			for i, c := range ref.Cases {
				require.Equal(t, cases[i].Name, c.Name)
				around := func(x ids) ids {
					if x == nil {
						return nil
					}
					return slices.Concat(ref.AddPrefix, x, ref.AddSuffix)
				}
				special, add := around(c.IDs), around(c.IDs)
				if c.IDsSpecial != nil {
					special = *c.IDsSpecial
				}
				if c.IDsAdd != nil {
					add = *c.IDsAdd
				}
				text := cases[i].bytes()
				check(t, v, c.Name+" special", text, token.Options{AddSpecial: true, ParseSpecial: true}, special)
				if slices.Contains(forged[name], c.Name) {
					requireNoControl(t, v, text)
					continue
				}
				check(t, v, c.Name+" plain", text, token.Options{}, c.IDs)
				check(t, v, c.Name+" add", text, token.Options{AddSpecial: true}, add)
			}
		})
	}
}

// check encodes text. Where the reference gave up (want is nil), so may we, but not panic.
func check(t *testing.T, v *token.Vocab, name, text string, o token.Options, want ids) {
	t.Helper()
	got, err := v.Encode([]token.ID{}, text, o)
	if want == nil || err == nil && slices.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-3)
	t.Errorf("%s: %.200q: error %v, first difference at token %d\n got …%v\nwant …%v", name, text, err, at,
		got[from:min(len(got), from+40)], want[from:min(len(want), from+40)])
}

func requireNoControl(t *testing.T, v *token.Vocab, text string) {
	t.Helper()
	got, err := v.Encode(nil, text, token.Options{})
	require.NoError(t, err)
	for _, id := range got {
		require.False(t, v.IsControl(id))
		require.NotRegexp(t, `^<\|\w+\|>$`, string(v.Piece(id)))
	}
	require.Equal(t, text, string(v.Decode(nil, got, true)))
}

// TestReferenceO200k compares the cut vocabulary with what the full one (too large to keep) gives, wherever that needs
// no token beyond the cut.
func TestReferenceO200k(t *testing.T) {
	const cut = 49152
	v, ref, cases := vocabOf(t, "o200k-cut"), referenceOf(t, "o200k"), texts(t)
	compared := 0
	for i, c := range ref.Cases {
		if slices.ContainsFunc(c.IDs, func(id token.ID) bool { return id >= cut }) {
			continue
		}
		compared++
		check(t, v, c.Name, cases[i].bytes(), token.Options{}, c.IDs)
	}
	require.Equal(t, 76, compared)
}

// TestReferencePreTokenizers compares what every tokenizer.ggml.pre name makes of the Llama 3 vocabulary.
func TestReferencePreTokenizers(t *testing.T) {
	var ref struct {
		Groups   [][]string
		Defaults map[string]struct {
			BOS    token.ID
			AddBOS int `json:"add_bos"`
		}
		Cases []struct {
			Name    string
			Results []struct {
				Groups []int
				IDs    ids
			}
		}
	}
	readGzip(t, "pre-variants.json.gz", &ref)
	byName := map[string]string{}
	for _, c := range texts(t) {
		byName[c.Name] = c.bytes()
	}
	require.Len(t, ref.Defaults, 83)
	base := with(metaOf(t, "llama-bpe"), "tokenizer.ggml.merges", usefulMerges(t, byName))
	for g, names := range ref.Groups {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				v, err := token.New(with(base, "tokenizer.ggml.pre", name))
				require.NoError(t, err)
				for _, c := range ref.Cases {
					for _, r := range c.Results {
						if slices.Contains(r.Groups, g) {
							check(t, v, c.Name, byName[c.Name], token.Options{}, r.IDs)
						}
					}
				}
				var first []token.ID
				if ref.Defaults[name].AddBOS == 1 {
					first = []token.ID{ref.Defaults[name].BOS}
				}
				check(t, v, "empty", "", token.Options{AddSpecial: true}, append(ids{}, first...))
			})
		}
	}
}

// usefulMerges are the merges whose result occurs in some text: the others cannot happen, and 83 vocabularies with all
// of them take long to make.
func usefulMerges(t *testing.T, texts map[string]string) []string {
	var spelt strings.Builder // in the alphabet of byte-level vocabularies
	for _, text := range texts {
		for _, b := range []byte(strings.ToValidUTF8(text, "\ufffd\ufffd\ufffd\ufffd")) {
			spelt.WriteString(spell(b))
		}
		spelt.WriteByte(' ')
	}
	index := suffixarray.New([]byte(spelt.String()))
	merges, err := metaOf(t, "llama-bpe").Strings("tokenizer.ggml.merges")
	require.NoError(t, err)
	var useful []string
	for _, m := range merges {
		if index.Lookup([]byte(strings.Replace(m, " ", "", 1)), 1) != nil {
			useful = append(useful, m)
		}
	}
	return useful
}

// with returns m with one key changed; a nil value takes the key away.
func with(m *meta.Map, key string, value any) *meta.Map {
	out := new(meta.Map)
	for _, k := range m.Keys() {
		if x, _ := m.Get(k); k != key {
			out.Set(k, x)
		}
	}
	if value != nil {
		out.Set(key, value)
	}
	return out
}
