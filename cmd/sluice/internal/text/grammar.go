package text

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
	"github.com/sluice-ai/sluice/stages/token"
)

type Grammar struct {
	models.Flag
	Schema  string `placeholder:"FILE" xor:"grammar" help:"JSON Schema that texts must meet."`
	Regex   string `placeholder:"EXPR" xor:"grammar" help:"Regular expression (RE2) that a text must match from end to end."`
	GBNF    string `name:"gbnf" placeholder:"FILE" xor:"grammar" help:"Grammar in llama.cpp's GBNF."`
	Formats bool   `help:"Take the formats that a schema names as binding, as generation does."`
	Draft   int    `placeholder:"N" help:"The draft of schemas that do not name theirs: 7, or 2020 as without it."`
	Masks   bool   `help:"Read ids of tokens, and print which tokens may follow before each and after the last."`
	JSON    bool   `name:"json" help:"Print JSON, as without it."`
}

func (Grammar) Examples() [2]string {
	return [2]string{
		`echo '["2026-11-23", "soon"]' | sluice grammar --regex '\d{4}-\d\d-\d\d'`,
		`sluice tokenize '{"a": 1}' | sluice grammar --schema schema.json --masks`,
	}
}

// Run reads a JSON array of texts, or ids, from standard input.
func (c *Grammar) Run(e *env.Env) error {
	g, err := c.grammar(e)
	if err != nil {
		return err
	}
	form, err := grammar.Compile(g, grammar.DefaultLimits())
	if err != nil {
		return fmt.Errorf("the grammar: %w", err)
	}
	p := form.Program()
	input, err := e.ReadInput(env.MostText)
	if err != nil {
		return err
	}
	if c.Masks {
		return c.masks(e, p, input)
	}
	var texts []string
	if err := json.Unmarshal(input, &texts); err != nil {
		return fmt.Errorf("standard input: want a JSON array of texts: %w", err)
	}
	type verdict struct {
		Accept   bool `json:"accept"`
		Consumed int  `json:"consumed"` // code points read before the text was certain to be no sentence
	}
	out := make([]verdict, len(texts))
	m := p.Matcher()
	for i, text := range texts {
		if out[i].Accept, out[i].Consumed, err = m.Check(text); err != nil {
			return fmt.Errorf("text %d: %w", i+1, err)
		}
	}
	return json.NewEncoder(e.Stdout).Encode(out)
}

func (c *Grammar) grammar(e *env.Env) (*grammar.Grammar, error) {
	if c.Draft != 0 && c.Draft != 7 && c.Draft != 2020 {
		return nil, env.Usagef("--draft is %d: want 7 or 2020", c.Draft)
	}
	return compute.GrammarFlags{Schema: c.Schema, Regex: c.Regex, Grammar: c.GBNF}.Read(e,
		schema.Options{Formats: c.Formats, Draft7: c.Draft == 7})
}

// allowed is a mask, the allowed tokens, as `--masks` prints it.
type allowed struct {
	N      int     `json:"n"`
	SHA256 string  `json:"sha256"` // the first 16 digits of the sum over the ids, each 32 bits, little-endian
	IDs    []int32 `json:"ids,omitempty"`
}

const mostListed = 24 // ids that are written out

func (c *Grammar) masks(e *env.Env, p *grammar.Program, input []byte) error {
	vocab, err := models.OpenVocab(e, c.Model)
	if err != nil {
		return err
	}
	ids, err := models.ParseIDs(strings.TrimSpace(string(input)), vocab.Size())
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	trie := grammar.NewTrie(vocab.Size(), vocab.Piece, vocab.EOG())
	out := struct {
		DeadAt  *int      `json:"dead_at"` // the first token that may not follow
		Allowed []allowed `json:"allowed"`
	}{}
	m, k, mask := p.Matcher(), p.Masker(trie), make([]uint64, trie.Words())
	for i := 0; ; i++ {
		if err := k.Mask(m, mask); err != nil {
			return err
		}
		out.Allowed = append(out.Allowed, describe(mask, vocab.Size()))
		if i == len(ids) {
			break
		}
		if mask[ids[i]/64]>>(ids[i]%64)&1 == 0 {
			out.DeadAt = &i
			break
		}
		if vocab.IsEOG(ids[i]) {
			break
		}
		if n, err := m.Read(vocab.Piece(ids[i])); err != nil || n < len(vocab.Piece(ids[i])) {
			return errors.Join(fmt.Errorf("token %d was allowed and could not be read", i+1), err)
		}
	}
	return json.NewEncoder(e.Stdout).Encode(out)
}

func describe(mask []uint64, size int) (a allowed) {
	sum := sha256.New()
	var word [4]byte
	ids := []token.ID{}
	for id := range token.ID(size) {
		if mask[id/64]>>(id%64)&1 == 1 {
			a.N++
			binary.LittleEndian.PutUint32(word[:], uint32(id))
			sum.Write(word[:])
			if len(ids) <= mostListed {
				ids = append(ids, id)
			}
		}
	}
	a.SHA256 = hex.EncodeToString(sum.Sum(nil)[:8])
	if a.N <= mostListed {
		a.IDs = ids
	}
	return a
}
