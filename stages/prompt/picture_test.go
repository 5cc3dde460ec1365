package prompt

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/stages/token"
)

// vocabOf has tokens <0> to <255>, but for those with names of their own, and all bytes behind them.
func vocabOf(t *testing.T, named map[int32]string, begins ...uint32) *token.Vocab {
	t.Helper()
	var tokens []string
	var types []int32
	for i := range int32(256) {
		name, ok := named[i]
		if !ok {
			name = fmt.Sprintf("<%d>", i)
		}
		tokens, types = append(tokens, name), append(types, 3)
	}
	for b := range 256 {
		r := rune(b)
		switch {
		case b <= ' ':
			r += 0x100
		case b >= 0x7f && b <= 0xa0:
			r += 0x121 - 0x7f
		case b == 0xad:
			r = 0x143
		}
		tokens, types = append(tokens, string(r)), append(types, 1)
	}
	m := &meta.Map{}
	m.Set("tokenizer.ggml.model", "gpt2")
	m.Set("tokenizer.ggml.pre", "qwen2")
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.token_type", types)
	m.Set("tokenizer.ggml.merges", []string{"a b"})
	for _, id := range begins {
		m.Set("tokenizer.ggml.bos_token_id", id)
		m.Set("tokenizer.ggml.add_bos_token", true)
	}
	v, err := token.New(m)
	require.NoError(t, err)
	return v
}

// png is the header of a PNG of a size, which is all that a prompt needs of it.
func png(w, h int) []byte {
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 4+4+5+4)...)
	binary.BigEndian.PutUint32(out[16:], uint32(w))
	binary.BigEndian.PutUint32(out[20:], uint32(h))
	out[24], out[25] = 8, 2
	return out
}

func image(w, h int) chat.Part {
	return chat.Part{Kind: chat.Image, At: "here", Picture: &chat.Picture{Data: png(w, h)}}
}

const bare = `{% for m in messages %}{{ m.content }}{% endfor %}`

func writerOf(t *testing.T, template string, v *token.Vocab, e *Eyes) *Writer {
	t.Helper()
	parsed, err := chat.Compile(template)
	require.NoError(t, err)
	return &Writer{Vocab: v, Template: parsed, Eyes: e}
}

// written is the prompt of a conversation as a server makes it.
func written(w *Writer, context int, messages ...chat.Message) (Prompt, error) {
	h := w.Template.Habits()
	h.Sees = w.Eyes != nil
	all, err := h.Normalise(messages, nil)
	if err != nil {
		return Prompt{}, err
	}
	return w.Write(&Source{Chat: &chat.Input{Messages: all}}, Room{Vocab: 512, Context: context}, time.Time{}, nil)
}

// TestPromptsAreTheReferences: text and pictures become the ids of the references, and pictures are where these have
// them.
func TestPromptsAreTheReferences(t *testing.T) {
	root := filepath.Join(testref.Dir(t), "multimodal")
	for _, c := range []struct {
		folder, projector string
		named             map[int32]string
		sizes             [][2]int
		around            int // tokens around a picture, on each side
	}{
		{"llava", "mlp", map[int32]string{250: "<image>"}, [][2]int{{40, 40}}, 0},
		{"gemma3_vision", "gemma3", map[int32]string{248: "<start_of_image>", 249: "<end_of_image>", 250: "<image_soft_token>"}, [][2]int{{64, 64}}, 1},
		{"qwen25vl", "qwen2.5vl_merger", qwenTokens, [][2]int{{80, 48}}, 1},
		{"qwen25vl_2img", "qwen2.5vl_merger", qwenTokens, [][2]int{{80, 48}, {48, 32}}, 1},
		{"qwen3vl", "qwen3vl_merger", qwenTokens, [][2]int{{80, 48}}, 1},
		{"qwen3vl_2img", "qwen3vl_merger", qwenTokens, [][2]int{{80, 48}, {48, 32}}, 1},
	} {
		t.Run(c.folder, func(t *testing.T) {
			want := converttest.Tensors(t, "multimodal", c.folder, "reference.safetensors")["ids"].IDs()
			v := vocabOf(t, c.named)
			e, err := EyesOf(c.projector, settingsOf(t, filepath.Join(root, strings.TrimSuffix(c.folder, "_2img"))), v)
			require.NoError(t, err)
			require.EqualValues(t, 250, e.Token)
			e.Before, e.After = strings.Trim(e.Before, "\n"), strings.Trim(e.After, "\n") // the references have no breaks
			m := chat.Message{Role: "user"}
			var places []int
			next := 0
			for at := 0; at < len(want); {
				if want[at] != 250 {
					at++
					continue
				}
				size := c.sizes[len(places)]
				m.Parts = append(m.Parts, chat.Part{Text: spelled(want[next : at-c.around])}, image(size[0], size[1]))
				places = append(places, at)
				for want[at] == 250 {
					at++
				}
				next = at + c.around
			}
			m.Parts = append(m.Parts, chat.Part{Text: spelled(want[next:])})
			p, err := written(writerOf(t, bare, v, e), 4096, m)
			require.NoError(t, err)
			require.Equal(t, want, p.Tokens)
			require.Len(t, p.Pictures, len(c.sizes))
			for i, s := range p.Pictures {
				require.Equal(t, places[i], s.At)
				require.Equal(t, png(c.sizes[i][0], c.sizes[i][1]), s.Data)
				require.NotEqual(t, want[s.At], want[s.At+s.Tokens])
			}
		})
	}
}

var qwenTokens = map[int32]string{248: "<|vision_start|>", 249: "<|vision_end|>", 250: "<|image_pad|>"}

func spelled(ids []int32) string {
	var text strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&text, "<%d>", id)
	}
	return text.String()
}

func settingsOf(t *testing.T, folder string) *picture.Settings {
	processor, err := os.ReadFile(filepath.Join(folder, "preprocessor_config.json"))
	require.NoError(t, err)
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	require.NoError(t, err)
	s, err := picture.FromFolder(processor, config)
	require.NoError(t, err)
	return s
}

// small has pictures of 28 x 28 pixels to a token.
var small = picture.Settings{Way: picture.Grid, Filter: picture.Bicubic, Patch: 14, Merge: 2, Frames: 2, Least: 784,
	Most: 784 * 64, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}

func TestPictures(t *testing.T) {
	v := vocabOf(t, qwenTokens)
	e, err := EyesOf("qwen2vl_merger", &small, v)
	require.NoError(t, err)
	text := func(p Prompt) string {
		s := string(v.Decode(nil, p.Tokens, true))
		for n := 9; n > 1; n-- {
			s = strings.ReplaceAll(s, strings.Repeat("<|image_pad|>", n), "*"+strconv.Itoa(n))
		}
		return strings.NewReplacer("<|vision_start|>", "[", "<|vision_end|>", "]").Replace(s)
	}
	listed := `{% for m in messages %}{% if m.content is not string %}{% for c in m.content %}{% if c.type == "image" %}I{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}`
	said := func(text string) chat.Part { return chat.Part{Text: text} }
	for _, c := range []struct {
		name, template string
		parts          []chat.Part
		want           string
	}{
		{"in its place", bare, []chat.Part{said("a"), image(56, 28), said("b"), said("c")}, "a[*2]b\nc"},
		{"alone", bare, []chat.Part{image(56, 56)}, "[*4]"},
		{"side by side", bare, []chat.Part{image(56, 28), image(28, 84)}, "[*2][*3]"},
		{"in lists", listed, []chat.Part{image(56, 28), said("b")}, "[*2]b"},
		{"left out by the template", `{{ messages[0].content | length }}`, []chat.Part{image(56, 28)}, "3"},
		{"marked by a stranger", bare, []chat.Part{said("\U0010FFFE1\U0010FFFE"), image(56, 28)}, "1[*2]"},
		{"thoughts apart", bare, []chat.Part{{Kind: chat.Thought, Text: "hm"}, said("x"), image(56, 28)}, "x[*2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := written(writerOf(t, c.template, v, e), 100, chat.Message{Role: "user", Parts: c.parts})
			require.NoError(t, err)
			require.Equal(t, c.want, text(p))
			for _, s := range p.Pictures {
				for _, id := range p.Tokens[s.At : s.At+s.Tokens] {
					require.Equal(t, e.Token, id)
				}
			}
		})
	}
	two := []chat.Message{{Role: "user", Parts: []chat.Part{said("a"), image(56, 28)}}, chat.Say("assistant", "A"),
		{Role: "user", Parts: []chat.Part{image(28, 84), said("b")}}}
	p, err := written(writerOf(t, bare, v, e), 100, two...)
	require.NoError(t, err)
	require.Equal(t, "a[*2]A[*3]b", text(p))
	require.Equal(t, []int{2, 7}, []int{p.Pictures[0].At, p.Pictures[1].At})

	v = vocabOf(t, qwenTokens, 7)
	p, err = written(writerOf(t, bare, v, e), 100, two...)
	require.NoError(t, err)
	require.Equal(t, "<7>a[*2]A[*3]b", text(p), "a prompt begins once")
}

func TestPicturesFaults(t *testing.T) {
	v := vocabOf(t, qwenTokens)
	e, err := EyesOf("qwen2vl_merger", &small, v)
	require.NoError(t, err)
	broken := chat.Part{Kind: chat.Image, At: "messages[0].content[1]", Picture: &chat.Picture{Data: []byte("GIF89a")}}
	for _, c := range []struct {
		part chat.Part
		eyes *Eyes
		want string
	}{
		{broken, e, "messages[0].content[1]: the picture ends too early: is it whole?"},
		{image(60_000, 60_000), e, "here: this PNG has 60000 x 60000 pixels"},
		{image(1, 300), e, "here: the picture is more than 200 times as long as it is wide: cut it"},
		{image(28*8, 28*8), e, "the picture here takes 64 tokens, and 2 stand before it: the context holds 50: send a smaller one, or fewer"},
		{chat.Part{Kind: chat.Image, At: "here"}, e, "here: this model reads text only, leave images out"},
		{image(28, 28), nil, "here: this model reads text only, leave images out"},
	} {
		m := chat.Message{Role: "user", Parts: []chat.Part{{Text: "a"}, c.part}}
		_, err := written(writerOf(t, bare, v, c.eyes), 50, m)
		require.ErrorContains(t, err, c.want)
	}
	_, err = EyesOf("ldp", &small, v)
	require.ErrorContains(t, err, `the projector is "ldp": want that of LLaVA, Gemma, Qwen-VL, GLM, Pixtral, InternVL, Idefics 3, Llama 4 or MiniCPM-V`)
	e, err = EyesOf("mlp", &small, v)
	require.NoError(t, err)
	require.Zero(t, e.Token, "a vocabulary without a token for pictures")
}

// TestPicturesOfTexts: a text that no template renders has pictures where their marks stand.
func TestPicturesOfTexts(t *testing.T) {
	v := vocabOf(t, qwenTokens)
	e, err := EyesOf("qwen2vl_merger", &small, v)
	require.NoError(t, err)
	text, shown := chat.Show("x [img-1] y", []string{"[img-1]", "[img-2]"}, []chat.Part{image(56, 28), image(28, 28)})
	require.Len(t, shown, 1, "the other has no place")
	w := writerOf(t, bare, v, e)
	p, err := w.Write(&Source{Text: text, Shown: shown}, Room{Vocab: 512, Context: 100}, time.Time{}, nil)
	require.NoError(t, err)
	require.Equal(t, "x <|vision_start|><|image_pad|><|image_pad|><|vision_end|> y", string(v.Decode(nil, p.Tokens, true)))
	require.Len(t, p.Pictures, 1)
	require.Equal(t, []int{3, 2}, []int{p.Pictures[0].At, p.Pictures[0].Tokens})
}

// TestPieces: a picture in pieces has each of them in its place, with the families' tokens around. Idefics 3's are
// those of llama.cpp's libmtmd, Llama 4's those of transformers.
func TestPieces(t *testing.T) {
	names := map[int32]string{1: "<fake_token_around_image>", 2: "<global-img>", 3: "<image>", 4: "<row_1_col_1>",
		5: "<row_1_col_2>", 6: "<row_2_col_1>", 7: "<row_2_col_2>", 8: "<|image_start|>", 9: "<|image_end|>", 10: "<|image|>",
		11: "<|patch|>", 12: "<|tile_x_separator|>", 13: "<|tile_y_separator|>", 17: "</image>", 18: "<slice>", 19: "</slice>", 20: "<unk>"}
	older := vocabOf(t, names)
	names[21], names[22] = "<image_id>", "</image_id>"
	v := vocabOf(t, names)
	cut := picture.Settings{Filter: picture.Bilinear, Patch: 8, Merge: 2, Frames: 1, Width: 16, Height: 16, Tokens: 2,
		Least: 1, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
	split, canvas := cut, cut
	slices := cut
	slices.Way, slices.Most, slices.Merge = picture.Slices, 4, 1
	split.Way, split.Most = picture.Split, 32
	canvas.Way, canvas.Most = picture.Canvas, 4
	for _, c := range []struct {
		projector string
		settings  *picture.Settings
		w, h      int
		want      string
	}{
		{"idefics3", &split, 32, 32, "1 4 3 3 1 5 3 3 n 1 6 3 3 1 7 3 3 n n 1 2 3 3 1"},
		{"idefics3", &split, 32, 16, "1 4 3 3 1 5 3 3 n n 1 2 3 3 1"},
		{"llama4", &canvas, 32, 32, "8 11 11 12 11 11 13 11 11 12 11 11 13 10 11 11 9"},
		{"llama4", &canvas, 16, 32, "8 11 11 13 11 11 13 10 11 11 9"},
		{"llama4", &canvas, 16, 16, "8 10 11 11 9"},
		{"resampler", &slices, 32, 32, "21 0 22 3 20 20 17 18 20 20 19 18 20 20 19 n 18 20 20 19 18 20 20 19 n"},
		{"resampler", &slices, 32, 16, "21 0 22 3 20 20 17 18 20 20 19 18 20 20 19 n"},
		{"resampler", &slices, 16, 16, "21 0 22 3 20 20 17 n"},
		{"resampler 2.5", &slices, 32, 32, "3 20 20 17 18 3 20 20 17 3 20 20 17 n 3 20 20 17 3 20 20 17 19 n"},
		{"resampler 2.5", &slices, 16, 16, "3 20 20 17 n"},
	} {
		v, projector := v, c.projector
		if name, old := strings.CutSuffix(projector, " 2.5"); old {
			v, projector = older, name
		}
		e, err := EyesOf(projector, c.settings, v)
		require.NoError(t, err)
		m := chat.Message{Role: "user", Parts: []chat.Part{{Text: "<14>"}, image(c.w, c.h), {Text: "<15>"}}}
		p, err := written(writerOf(t, bare, v, e), 100, m)
		require.NoError(t, err)
		var text []string
		for _, id := range p.Tokens {
			switch id {
			case 256 + '\n':
				text = append(text, "n")
			case 256 + '0':
				text = append(text, "0")
			default:
				text = append(text, strconv.Itoa(int(id)))
			}
		}
		require.Equal(t, "14 "+c.want+" 15", strings.Join(text, " "))
		for i, s := range p.Pictures {
			require.Equal(t, []int{i, 2}, []int{s.Piece, s.Tokens})
			require.Equal(t, []int32{e.Token, e.Token}, p.Tokens[s.At:][:2])
			require.NotEqual(t, e.Token, p.Tokens[s.At-1])
		}
		require.Len(t, p.Pictures, strings.Count(strings.ReplaceAll(" "+c.want+" ", " ", "  "), fmt.Sprintf(" %d ", e.Token))/2)
		most := p.Pictures[0].At + 1
		_, err = written(writerOf(t, bare, v, e), most, m)
		require.ErrorContains(t, err, fmt.Sprintf("the context holds %d", most))
	}
}

// TestPiecesAreNumbered: MiniCPM-V numbers the pictures of a prompt, not their pieces.
func TestPiecesAreNumbered(t *testing.T) {
	v := vocabOf(t, map[int32]string{1: "<image>", 2: "</image>", 3: "<image_id>", 4: "</image_id>", 5: "<unk>"}, 7)
	s := picture.Settings{Way: picture.Slices, Filter: picture.Bilinear, Patch: 8, Merge: 1, Frames: 1, Width: 16,
		Height: 16, Tokens: 1, Least: 1, Most: 4, Factor: 1.0 / 255, Std: [3]float32{1, 1, 1}}
	e, err := EyesOf("resampler", &s, v)
	require.NoError(t, err)
	m := chat.Message{Role: "user", Parts: []chat.Part{image(32, 32), image(16, 16), image(16, 16)}}
	p, err := written(writerOf(t, bare, v, e), 200, m)
	require.NoError(t, err)
	text := string(v.Decode(nil, p.Tokens, true))
	for _, id := range []string{"0", "1", "2"} {
		require.Equal(t, 1, strings.Count(text, "<image_id>"+id+"</image_id><image>"), text)
	}
	require.Len(t, p.Pictures, 5+1+1)
	require.Equal(t, 1, strings.Count(text, "<7>"), "a prompt begins once")
}
