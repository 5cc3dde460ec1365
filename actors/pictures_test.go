package actors

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/stages/model/vision/visiontest"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// pictured is a reference of a model that sees.
type picturedReference struct {
	text, tower *gguf.File
	pictures    []Picture
	ids         []int32
	logits      []float32 // of all positions
	answer      []int32   // greedy
}

// pictureReferences are the folders of all of them.
var pictureReferences = []string{"llava", "gemma3_vision", "qwen25vl", "qwen25vl_2img", "qwen3vl", "qwen3vl_2img"}

// readPictured reads a reference, with the pixels that the processor of its library has made.
func readPictured(t *testing.T, name string) *picturedReference {
	t.Helper()
	tensors := func(file string) map[string]converttest.Tensor {
		return converttest.Tensors(t, "multimodal", name, file)
	}
	root := filepath.Join(testref.Dir(t), "multimodal")
	dir := filepath.Join(root, strings.TrimSuffix(name, "_2img"))
	r := &picturedReference{
		text: converttest.Convert(t, dir, func(f *convert.Folder) (*convert.Model, error) {
			return convert.Plan(f, convert.Options{})
		}),
		tower: converttest.Convert(t, dir, func(f *convert.Folder) (*convert.Model, error) {
			return convert.PlanVision(f, convert.Options{})
		}),
	}
	ref := tensors("reference.safetensors")
	r.ids, r.logits = ref["ids"].IDs(), ref["logits"].Floats()
	var greedy struct{ Tokens []int32 }
	text, err := os.ReadFile(filepath.Join(root, name, "greedy.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &greedy))
	r.answer = greedy.Tokens
	if strings.HasPrefix(name, "qwen") {
		p := tensors("processor.safetensors")
		const patch, merge, frames = 8, 2, 2
		values := p["pixel_values"].Floats()
		for grid := p["image_grid_thw"].Longs(); len(grid) > 0; grid = grid[3:] {
			at := ir.Grid{Height: grid[1], Width: grid[2]}
			n := at.Height * at.Width * 3 * frames * patch * patch
			pixels, err := vision.Unfold(values[:n], at, patch, merge, frames)
			require.NoError(t, err)
			r.pictures, values = append(r.pictures, Picture{Pixels: pixels}), values[n:]
		}
		return r
	}
	values := tensors("processor_exact.safetensors")["pixel_values"].Floats()
	side := int(math.Sqrt(float64(len(values) / 3)))
	r.pictures = []Picture{{Pixels: &vision.Picture{Height: side, Width: side, Values: values}}}
	return r
}

func startPictured(t *testing.T, r *picturedReference, edit func(*Config)) *Engine {
	t.Helper()
	return startFile(t, r.text, func(c *Config) {
		c.Tower = r.tower
		if edit != nil {
			edit(c)
		}
	})
}

// scored are the logits of all positions.
func scored(t *testing.T, e *Engine, r *picturedReference) []float32 {
	t.Helper()
	s, err := e.ScoreOf(Request{Tokens: r.ids, Pictures: r.pictures})
	require.NoError(t, err)
	return allLogits(t, s)
}

func (r *picturedReference) request(most int) Request {
	a := plain(slices.Clone(r.ids), most)
	a.Pictures = r.pictures
	return a
}

// TestPicturesAreTheLibrarys: logits and answers of all references, whole and in pieces, are those of transformers, and
// pieces change no bit.
func TestPicturesAreTheLibrarys(t *testing.T) {
	for _, name := range pictureReferences {
		t.Run(name, func(t *testing.T) {
			r := readPictured(t, name)
			oracle := func(c *Config) { c.Device = ref.New() }
			r.check(t, startPictured(t, r, oracle))
			r = readPictured(t, name)
			if name == "gemma3_vision" && devicetest.OnGPU() {
				return // TestPicturesOnGPUs
			}
			e := startPictured(t, r, nil)
			whole := r.check(t, e)
			rows := 5
			if name == "gemma3_vision" {
				rows = 17 // a picture of 16 is one piece
			}
			r = readPictured(t, name)
			require.Equal(t, whole, scored(t, startPictured(t, r, func(c *Config) { c.Rows = rows }), r), "in pieces")
		})
	}
}

// check compares logits and answer with the library's, and returns the logits.
func (r *picturedReference) check(t *testing.T, e *Engine) []float32 {
	t.Helper()
	require.True(t, e.Sees())
	whole := scored(t, e, r)
	require.Len(t, whole, len(r.logits))
	require.Less(t, distance(whole, r.logits), 5e-4)
	require.Equal(t, r.answer, collect(t, generate(t, e, r.request(len(r.answer)))).tokens)
	return whole
}

func generate(t *testing.T, e *Engine, r Request) *Stream {
	t.Helper()
	s, err := e.Generate(r)
	require.NoError(t, err)
	return s
}

// TestPicturesOnGPUs: a GPU whose driver computes in plain Go gives the same answers; rows that see those after them
// are refused there by name.
func TestPicturesOnGPUs(t *testing.T) {
	for _, name := range []string{"llava", "qwen25vl", "qwen3vl_2img", "gemma3_vision"} {
		t.Run(name, func(t *testing.T) {
			r := readPictured(t, name)
			e := startPictured(t, r, func(c *Config) { c.Device = devicetest.Played(t) })
			a, err := drain(generate(t, e, r.request(len(r.answer))))
			if name == "gemma3_vision" {
				require.ErrorContains(t, err, "rows of a picture see each other")
				return
			}
			require.NoError(t, err)
			require.Equal(t, r.answer, a.tokens)
		})
	}
}

// TestPicturesAndTexts: what else is computed, and how often it has to be computed again for want of room, changes no
// answer about a picture.
func TestPicturesAndTexts(t *testing.T) {
	for _, name := range []string{"qwen3vl_2img", "gemma3_vision"} {
		t.Run(name, func(t *testing.T) {
			if name == "gemma3_vision" {
				devicetest.OnProcessor(t, "rows that see those after them")
			}
			const most = 100
			r := readPictured(t, name)
			texts := []Request{plain([]int32{5, 6, 7, 8}, most), plain(slices.Repeat([]int32{9, 11}, 20), most)}
			alone := startPictured(t, r, nil)
			want := collect(t, generate(t, alone, r.request(most))).tokens
			var wantTexts [][]int32
			for _, q := range texts {
				wantTexts = append(wantTexts, collect(t, generate(t, alone, q)).tokens)
			}
			r = readPictured(t, name)
			e := startPictured(t, r, func(c *Config) { c.Sequences, c.Blocks, c.Rows = 3, 5, 24 })
			streams := []*Stream{generate(t, e, r.request(most))}
			for _, q := range texts {
				streams = append(streams, generate(t, e, q))
			}
			got := make([]answer, len(streams))
			var all sync.WaitGroup
			for i, s := range streams {
				all.Go(func() { got[i], _ = drain(s) })
			}
			all.Wait()
			require.Equal(t, want, got[0].tokens)
			require.Equal(t, wantTexts, [][]int32{got[1].tokens, got[2].tokens})
		})
	}
}

// TestPicturesAreCached: the second question about a picture finds its rows in the cache; another picture in the same
// place shares nothing, and a prompt without one only what stands before it.
func TestPicturesAreCached(t *testing.T) {
	r := readPictured(t, "llava")
	long := append(slices.Clone(r.ids), slices.Repeat([]int32{40, 41, 42, 43}, 16)...) // more than a block
	e := startPictured(t, r, nil)
	ask := func(pictures ...Picture) answer {
		a := plain(slices.Clone(long), 8)
		a.Pictures = pictures
		return collect(t, generate(t, e, a))
	}
	first := ask(r.pictures...)
	require.Zero(t, first.usage.Cached)
	require.Positive(t, first.usage.Spent.Spent(bill.Pictures), "the tower's cost is told")
	again := ask(r.pictures...)
	require.Equal(t, 64, again.usage.Cached)
	require.Equal(t, first.tokens, again.tokens)
	other := *r.pictures[0].Pixels
	other.Values = make([]float32, len(other.Values))
	blank := ask(Picture{Pixels: &other})
	require.Zero(t, blank.usage.Cached)
	require.NotEqual(t, first.tokens, blank.tokens)
	none := ask()
	require.Zero(t, none.usage.Cached)
	require.Zero(t, none.usage.Spent.Spent(bill.Pictures))
	require.Equal(t, first.tokens, ask(r.pictures...).tokens)
	looked := 0
	for _, s := range e.house.Spans() {
		if s.Kind == trace.Block && strings.HasSuffix(s.Track, "/tower") && s.Work > 0 {
			looked++
		}
	}
	require.Equal(t, 2, looked, "a span for each of two pictures")
}

// TestPlanOfTower: a tower's weights come out of the budget for its model's. One that only comes along is left out if
// there is no room for it.
func TestPlanOfTower(t *testing.T) {
	r := readPictured(t, "llava")
	m := Model{File: r.text, Tower: r.tower}
	p, err := PlanFor(&m, devicetest.Processor(t, ""))
	require.NoError(t, err)
	bytes, values := p.Besides.Weights, int64(0)
	for _, x := range r.tower.Tensors {
		n := int64(1)
		for _, d := range x.Shape {
			n *= int64(d)
		}
		values += n
	}
	require.Equal(t, backend.Memory{Weights: bytes, Scratch: mostSeen}, p.Besides)
	require.True(t, values <= bytes && bytes <= 4*values, "%d bytes of %d values", bytes, values)

	s, err := specOf(&m)
	require.NoError(t, err)
	for _, c := range []struct{ budget, left int64 }{{0, 0}, {bytes + 5, 5}} {
		a := place.Ask{Budgets: []int64{c.budget, 7}}
		require.NoError(t, fitBesides(s, &m, &a))
		require.Equal(t, []int64{c.left, 7}, a.Budgets)
	}
	a := place.Ask{Budgets: []int64{bytes}}
	const want = "the tower's weights alone take 0 MiB, more than the budget for weights"
	require.EqualError(t, fitBesides(s, &m, &a), want)
	m.TowerIfFits = true
	require.NoError(t, fitBesides(s, &m, &a))
	require.Equal(t, want, s.info.Blind)
	require.Nil(t, s.eye)
	require.Nil(t, s.writer.Eyes)
	require.Nil(t, m.Tower)
	require.Zero(t, s.besides())
}

// TestPlacesOfPictures: a token for a picture becomes as many as it has rows; places and pictures must be as many.
func TestPlacesOfPictures(t *testing.T) {
	r := readPictured(t, "qwen25vl_2img")
	e := startPictured(t, r, nil)
	short := []int32{}
	for i, id := range r.ids { // one token for each picture, as templates write it
		if id != 250 || r.ids[i-1] != 250 {
			short = append(short, id)
		}
	}
	ask := plain(short, len(r.answer))
	ask.Pictures = r.pictures
	a := collect(t, generate(t, e, ask))
	require.Equal(t, r.answer, a.tokens)
	require.Equal(t, len(r.ids), a.usage.Prompt)
	ask = plain(short, 1)
	ask.Pictures = r.pictures[:1]
	_, err := drain(generate(t, e, ask))
	require.ErrorContains(t, err, "places for more than its 1 pictures")
	ask = plain([]int32{1, 2, 3}, 1)
	ask.Pictures = r.pictures
	_, err = drain(generate(t, e, ask))
	require.ErrorContains(t, err, "places for 0 of its 2 pictures")
	ask.Pictures = []Picture{{Encoded: []byte("GIF89a")}}
	_, err = drain(generate(t, e, ask))
	require.ErrorContains(t, err, "picture 1: ")
	blind := startFixture(t, fixture, nil)
	require.False(t, blind.Sees())
	_, err = drain(generate(t, blind, ask))
	require.ErrorContains(t, err, "does not see pictures")
}

// TestPicturesOfOtherFamilies: with towers that have no reference of their own, a picture in pieces, beside other texts
// and again changes no bit of logits nor an answer.
func TestPicturesOfOtherFamilies(t *testing.T) {
	for _, x := range visiontest.All() {
		if x.Width() != visiontest.Text {
			continue // rows as wide as no text that is at hand: actors/sight computes them
		}
		t.Run(x.Name, func(t *testing.T) {
			if x.Name == "gemma4 large" {
				devicetest.OnProcessor(t, "rows that see those after them")
			}
			r := readPictured(t, "llava")
			r.tower = x.File(t)
			seen := &vision.Picture{Height: x.Size[1], Width: x.Size[0], Values: make([]float32, 3*x.Size[0]*x.Size[1])}
			for i, v := range visiontest.Pixels(x.Size[0], x.Size[1]) {
				seen.Values[i] = float32(v)/128 - 1
			}
			r.pictures = []Picture{{Pixels: seen}}
			r.ids = []int32{5, 9, 0, 17, 33} // 0 holds the picture's place
			e := startPictured(t, r, nil)
			whole := scored(t, e, r)
			want := collect(t, generate(t, e, r.request(8)))
			rows := len(e.spec.eye.order.Front().Value.(*remembered).seen.Rows) / visiontest.Text
			require.Equal(t, 4+rows, want.usage.Prompt)
			require.Equal(t, want.tokens, collect(t, generate(t, e, r.request(8))).tokens)
			blind := r.request(8)
			blind.Tokens, blind.Pictures = []int32{5, 9, 1, 17, 33}, nil
			alone := collect(t, generate(t, e, blind)).tokens
			require.NotEqual(t, want.tokens, alone)
			r.text, r.tower = readPictured(t, "llava").text, x.File(t)
			e = startPictured(t, r, func(c *Config) { c.Rows = 67 }) // a picture whose rows see each other is one piece
			require.Equal(t, whole, scored(t, e, r))
			both := []*Stream{generate(t, e, r.request(8)), generate(t, e, blind)}
			require.Equal(t, want.tokens, collect(t, both[0]).tokens)
			require.Equal(t, alone, collect(t, both[1]).tokens)
		})
	}
}

// TestPicturesAreDecodedOnce: the second question about a picture decodes nothing, unless its rows are gone: then they
// are made again, the same.
func TestPicturesAreDecodedOnce(t *testing.T) {
	all := visiontest.All()
	x := all[slices.IndexFunc(all, func(x visiontest.Tiny) bool { return x.Name == "idefics3" })]
	r := readPictured(t, "llava")
	r.tower = x.File(t)
	eye := startPictured(t, r, nil).spec.eye
	files := make([][]byte, 2)
	for n := range files {
		m := image.NewNRGBA(image.Rect(0, 0, 96, 48))
		for i := range m.Pix {
			m.Pix[i] = uint8(i*i*7 + i*(n+1))
		}
		var file bytes.Buffer
		require.NoError(t, png.Encode(&file, m))
		files[n] = file.Bytes()
	}
	seen := func() (pieces []shown, rows [][]float32) {
		pieces, err := eye.read([]Picture{{Encoded: files[0]}, {Encoded: files[1]}})
		require.NoError(t, err)
		looked, err := eye.look(pieces)
		require.NoError(t, err)
		for _, p := range looked {
			rows = append(rows, p.Seen.(*sight.Seen).Rows)
		}
		return pieces, rows
	}
	first, want := seen()
	again, got := seen()
	require.Equal(t, want, got)
	eye.mu.Lock()
	for hash, at := range eye.seen { // as if others had taken their place
		eye.order.Remove(at)
		delete(eye.seen, hash)
	}
	eye.bytes = 0
	eye.mu.Unlock()
	_, got = seen()
	require.Equal(t, want, got)
	require.Len(t, first, 6)
	for i := range first {
		require.NotNil(t, first[i].pixels)
		require.Nil(t, again[i].pixels)
		require.Equal(t, first[i].Picture, again[i].Picture)
	}
	for i := range mostSizes {
		eye.sizes[picture.Hash{1, byte(i), byte(i >> 8)}] = []batch.Picture{{}}
	}
	_, err := eye.readOne(&Picture{Encoded: append(slices.Clone(files[0]), 0)})
	require.NoError(t, err)
	require.Len(t, eye.sizes, 1)
}

// TestPicturesInPieces: a picture that its family cuts is as many pictures, each in its place; of a conversation it is
// the same, and tokens that hold other places are refused.
func TestPicturesInPieces(t *testing.T) {
	all := visiontest.All()
	x := all[slices.IndexFunc(all, func(x visiontest.Tiny) bool { return x.Name == "idefics3" })]
	r := readPictured(t, "llava")
	r.tower = x.File(t)
	e := startPictured(t, r, nil)
	m := image.NewNRGBA(image.Rect(0, 0, 96, 48))
	for i := range m.Pix {
		m.Pix[i] = uint8(i*i*7 + i) // transparent in places
	}
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, m))
	pieces, err := e.spec.eye.readOne(&Picture{Encoded: file.Bytes()})
	require.NoError(t, err)
	require.Len(t, pieces, 3)
	r.ids = []int32{5, 0, 9, 0, 7, 8, 0, 17} // 0 holds a piece's place
	r.pictures = []Picture{{Encoded: file.Bytes()}}
	cut := collect(t, generate(t, e, r.request(8)))
	require.Equal(t, 5+3*4, cut.usage.Prompt)
	r.pictures = nil
	for _, p := range pieces {
		r.pictures = append(r.pictures, Picture{Pixels: p.pixels})
	}
	require.Equal(t, cut.tokens, collect(t, generate(t, e, r.request(8))).tokens)
	slices.Reverse(r.pictures)
	require.NotEqual(t, cut.tokens, collect(t, generate(t, e, r.request(8))).tokens)

	places := []prompt.Seen{}
	for i := range 3 {
		places = append(places, prompt.Seen{At: 1 + 6*i, Tokens: 4, Piece: i, Data: file.Bytes(), Place: "here"})
	}
	shown, err := e.spec.eye.rendered(append(slices.Clone(places), places...))
	require.NoError(t, err)
	for i, p := range shown {
		require.Equal(t, pieces[i%3].Hash, p.Hash)
		require.Equal(t, 1+6*(i%3), p.At)
	}
	_, err = e.spec.eye.rendered(append(places, prompt.Seen{Piece: 3, Tokens: 4, Place: "here"}))
	require.ErrorContains(t, err, "here: it has 3 pieces, and tokens hold the places of more")
	places[2].Tokens++
	_, err = e.spec.eye.rendered(places)
	require.ErrorContains(t, err, "here: it takes 4 rows, and 5 tokens hold their places")
}
