package actors

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Picture is one of a prompt's.
type Picture struct {
	Encoded []byte          // a PNG, JPEG, WebP or GIF file; or
	Pixels  *vision.Picture // what the model's processor makes of one
}

// eye is how a model sees: by its tower, beside the device.
type eye struct {
	annex
	file     *gguf.File
	settings *picture.Settings
	tower    *vision.Tower
	prompts  *prompt.Eyes
	holder   int32         // the token that holds the place of a picture's row in a prompt
	beside   *sight.Beside // what layers are given besides a picture's rows; nil: nothing
	sight    *sight.Eye

	sizing sync.Mutex
	sizes  map[picture.Hash][]batch.Picture // of encoded pictures: their pieces, without rows
}

// mostSizes is how many pictures' sizes are remembered: some hundred bytes each.
const mostSizes = 4096

// newEye opens the tower of a model, if it has one; nil: it has none.
func newEye(m *Model, text *ir.Program, vocab *token.Vocab) (*eye, error) {
	if m.Tower == nil {
		return nil, nil //nolint:nilnil // most models do not see
	}
	e := &eye{file: m.Tower, annex: newAnnex(), sizes: map[picture.Hash][]batch.Picture{}}
	var err error
	if e.sight, err = sight.Open(nil, m.Tower); err != nil {
		return nil, err
	}
	e.tower = e.sight.Tower
	if e.beside, err = sight.OpenBeside(m.File); err != nil {
		return nil, fmt.Errorf("%s: %w", m.File.Name, err)
	}
	if e.settings, err = picture.FromClip(&m.Tower.Meta); err == nil {
		err = e.fit(text, vocab)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Tower.Name, err)
	}
	return e, nil
}

// fit checks that the tower's rows are the text's, and finds the token that holds their places.
func (e *eye) fit(text *ir.Program, vocab *token.Vocab) (err error) {
	if e.tower.Width != text.Width {
		return fmt.Errorf("its rows have %d values, those of the model %d: it belongs to another one", e.tower.Width, text.Width)
	}
	if beside := len(text.Segments[0].Carries) > 1; beside != (e.beside != nil) {
		return errors.New("layers of the model have inputs of their own, made of tokens: rows of pictures have none")
	}
	if e.prompts, err = prompt.EyesOf(e.tower.Kind, e.settings, vocab); err != nil {
		return err
	}
	if id, err := e.file.Meta.Int("sluice.picture_token"); err == nil && id >= 0 && id < int64(text.Vocab) {
		e.prompts.Token = int32(id)
	}
	e.holder = e.prompts.Token
	return nil
}

func (e *eye) close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.sight.Close(), e.beside.Close(), e.file.Close(), e.annex.close())
}

// shown is a picture with its place in a prompt.
type shown struct {
	batch.Picture
	pixels  *vision.Picture // nil: it was seen before, and is decoded again only if its rows are there no more
	encoded []byte          // then: what it is decoded of
	piece   int
}

// read makes pixels of a request's pictures, and finds how many rows each takes.
func (e *eye) read(all []Picture) (out []shown, err error) {
	for i, p := range all {
		pieces, err := e.readOne(&p)
		if err != nil {
			return nil, refusal.Of("picture %d: %v", i+1, err)
		}
		out = append(out, pieces...)
	}
	return out, nil
}

// readOne reads a picture, in as many pieces as its processor cuts it. One that was read before is not decoded.
func (e *eye) readOne(p *Picture) (out []shown, err error) {
	if p.Pixels != nil {
		return e.placed([]shown{{Picture: batch.Picture{Hash: hashOf(p.Pixels)}, pixels: p.Pixels}})
	}
	hash := e.settings.HashOf(p.Encoded)
	e.sizing.Lock()
	known := e.sizes[hash]
	e.sizing.Unlock()
	for i, piece := range known {
		out = append(out, shown{Picture: piece, encoded: p.Encoded, piece: i})
	}
	if known != nil {
		return out, nil
	}
	if out, err = e.decode(p.Encoded); err != nil {
		return nil, err
	}
	for i := range out {
		known = append(known, out[i].Picture)
	}
	e.sizing.Lock()
	defer e.sizing.Unlock()
	if len(e.sizes) >= mostSizes {
		clear(e.sizes)
	}
	e.sizes[hash] = known
	return out, nil
}

// decode makes pixels of an encoded picture.
func (e *eye) decode(data []byte) (out []shown, err error) {
	made, err := e.settings.Process(data)
	if err != nil {
		return nil, err
	}
	for _, piece := range made {
		pixels, err := e.pixels(piece)
		if err != nil {
			return nil, err
		}
		out = append(out, shown{Picture: batch.Picture{Hash: piece.Hash}, pixels: pixels})
	}
	return e.placed(out)
}

// placed finds the rows that pictures take.
func (e *eye) placed(out []shown) ([]shown, error) {
	for i := range out {
		x := &out[i]
		l, err := e.tower.Layout(x.pixels.Height, x.pixels.Width)
		if err != nil {
			return nil, err
		}
		x.Grid, x.Both = e.tower.Placed(l), e.tower.Both
	}
	return out, nil
}

// rendered are the pictures of a conversation, which have their places already.
func (e *eye) rendered(all []prompt.Seen) (out []shown, err error) {
	var pieces []shown
	for i := range all {
		at := &all[i]
		if at.Piece == 0 {
			pieces, err = e.readOne(&Picture{Encoded: at.Data})
		}
		switch {
		case err != nil:
		case at.Piece >= len(pieces):
			err = fmt.Errorf("it has %d pieces, and tokens hold the places of more", len(pieces))
		case pieces[at.Piece].Rows() != at.Tokens:
			err = fmt.Errorf("it takes %d rows, and %d tokens hold their places", pieces[at.Piece].Rows(), at.Tokens)
		}
		if err != nil {
			return nil, refusal.Of("%s: %v", at.Place, err)
		}
		x := pieces[at.Piece]
		x.At = at.At
		out = append(out, x)
	}
	return out, nil
}

// pixels are a processed picture's, colour by colour.
func (e *eye) pixels(p *picture.Picture) (*vision.Picture, error) {
	if e.settings.Way != picture.Grid {
		return &vision.Picture{Height: p.Height, Width: p.Width, Values: p.Values()}, nil
	}
	return vision.Unfold(p.Values(), ir.Grid{Height: p.Grid[1], Width: p.Grid[2]}, e.settings.Patch, e.settings.Merge,
		e.settings.Frames)
}

func hashOf(p *vision.Picture) (to picture.Hash) {
	h := sha256.New()
	var word [4]byte
	for _, x := range append([]float32{float32(p.Height), float32(p.Width)}, p.Values...) {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
		h.Write(word[:])
	}
	h.Sum(to[:0])
	return to
}

// place gives pictures their places in a prompt, in order: each has a row of tokens that hold them, or one of these, of
// which there are then as many as it has rows.
func (e *eye) place(tokens []int32, all []shown) ([]int32, error) {
	out, next := make([]int32, 0, len(tokens)), 0
	for i := 0; i < len(tokens); i++ {
		if out = append(out, tokens[i]); tokens[i] != e.holder {
			continue
		}
		if next == len(all) {
			return nil, refusal.Of("the prompt has places for more than its %d pictures: leave out %q", len(all),
				fmt.Sprint(e.holder))
		}
		p := &all[next]
		next++
		p.At = len(out) - 1
		n := p.Rows()
		for len(out) < p.End() {
			out = append(out, e.holder)
		}
		if i+n <= len(tokens) && !slices.ContainsFunc(tokens[i:i+n], func(t int32) bool { return t != e.holder }) {
			i += n - 1
		}
	}
	if next < len(all) {
		return nil, refusal.Of("the prompt has places for %d of its %d pictures, or pieces of pictures: the model's template "+
			"does not show them", next, len(all))
	}
	return out, nil
}

// look returns the rows of pictures, computed or remembered.
func (e *eye) look(all []shown) (out []batch.Picture, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var again []shown // what from is decoded to
	var from []byte
	for _, p := range all {
		seen := e.find(p.Hash)
		if seen == nil {
			if p.pixels == nil {
				if again == nil || &from[0] != &p.encoded[0] {
					if again, err = e.decode(p.encoded); err != nil {
						return nil, err
					}
					from = p.encoded
				}
				p.pixels = again[p.piece].pixels
			}
			seen, err = e.compute(p.Hash, func(d backend.Device) (*sight.Seen, error) { return e.rows(d, p.pixels) })
			if err != nil {
				return nil, err
			}
		}
		p.Seen = seen
		out = append(out, p.Picture)
	}
	return out, nil
}

// rows computes the rows of a picture.
func (e *eye) rows(d backend.Device, p *vision.Picture) (*sight.Seen, error) {
	e.sight.Use(d)
	seen, err := e.sight.Look(p)
	if err == nil && e.beside != nil {
		seen.Beside, err = e.beside.Of(d, seen.Rows)
	}
	return seen, err
}
