package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/sluice-ai/sluice/stages/route"
)

// A block of a request's text stands for a block of 64 tokens: which tokens these are is known where the model is.
const (
	blockTokens = 64
	tokenBytes  = 4
	blockBytes  = blockTokens * tokenBytes
	mostBlocks  = 4096 // of one request
	mostKeys    = 8192 // that are remembered of each model, twice
)

// Ask is what routing knows of a request's body.
type Ask struct {
	Model  string
	Prompt int // tokens, about
	Keys   []route.Key
}

// Read finds a request's model and text in its body. It returns false where there is none, as in a body that is no
// JSON.
func Read(salt uint64, body string) (a Ask, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &fields) != nil || json.Unmarshal(fields["model"], &a.Model) != nil {
		return a, false
	}
	var text []byte
	for _, name := range []string{"tools", "system", "instructions", "messages", "prompt", "input"} { // as templates begin
		text = append(text, fields[name]...)
	}
	a.Prompt = max(len(text)/tokenBytes, 1)
	at := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("sluice route"), salt))
	for len(text) >= blockBytes && len(a.Keys) < mostBlocks {
		at = sha256.Sum256(append(at[:], text[:blockBytes]...))
		a.Keys = append(a.Keys, route.KeyOf(at))
		text = text[blockBytes:]
	}
	return a, true
}

// memory has the keys of what a model was asked for lately: those of the present and of the last generation.
type memory struct{ now, before map[route.Key]struct{} }

// add remembers keys. When a generation is full, the one before is forgotten.
func (m *memory) add(keys []route.Key) {
	for _, k := range keys {
		if len(m.now) >= mostKeys {
			m.now, m.before = nil, m.now
		}
		if m.now == nil {
			m.now = map[route.Key]struct{}{}
		}
		m.now[k] = struct{}{}
	}
}

func (m *memory) sketch() route.Sketch {
	if m == nil {
		return route.Sketch{}
	}
	var keys []route.Key
	for _, generation := range []map[route.Key]struct{}{m.now, m.before} {
		for k := range generation {
			keys = append(keys, k)
		}
	}
	return route.SketchOf(keys)
}
