package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/stages/picture"
)

// easel is a painter whose pictures have the colour of their seeds. Each step waits for a word on goes, if that is
// there.
type easel struct {
	names  []string
	orders chan paint.Order
	goes   chan struct{}
	left   chan error // why a picture ended early
	fails  error
}

func newEasel(names ...string) *easel {
	return &easel{names: names, orders: make(chan paint.Order, 64), left: make(chan error, 64)}
}

func (e *easel) Names() []string { return e.names }

// Usual implements answer.Painter: the second model is slower.
func (e *easel) Usual(name string) paint.Usual {
	if name == e.names[0] {
		return paint.Usual{Steps: 8}
	}
	return paint.Usual{Steps: 28, Guidance: 3.5}
}

func (e *easel) Draw(ctx context.Context, _ string, o *paint.Order) (*picture.Bitmap, error) {
	e.orders <- *o
	if e.fails != nil {
		return nil, e.fails
	}
	steps := o.Steps - o.First()
	for i := range steps {
		if e.goes != nil {
			select {
			case <-e.goes:
			case <-ctx.Done():
				e.left <- context.Cause(ctx)
				return nil, context.Cause(ctx)
			}
		}
		o.Tell(paint.Progress{Step: i + 1, Steps: steps, Preview: func() *picture.Bitmap { return coloured(2, 2, 100+i) }})
	}
	return coloured(o.Width, o.Height, int(o.Seed%200)), nil
}

// coloured is a picture of one red.
func coloured(w, h, red int) *picture.Bitmap {
	b := &picture.Bitmap{Width: w, Height: h, Pix: make([]uint8, 3*w*h)}
	for i := 0; i < len(b.Pix); i += 3 {
		b.Pix[i] = uint8(red)
	}
	return b
}

// redOf decodes a picture in base64: its sides, and how red it is.
func redOf(t *testing.T, text string) [3]int {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	m, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	r, _, _, _ := m.At(0, 0).RGBA()
	return [3]int{m.Bounds().Dx(), m.Bounds().Dy(), int(r >> 8)}
}

func painting(t *testing.T, e *easel, o Options) *running {
	t.Helper()
	o.Painter = e
	return start(t, o, nil)
}

// TestImages: OpenAI's own client gets pictures of a text, whole and as a stream with previews, and of a picture.
func TestImages(t *testing.T) {
	e := newEasel("painter")
	r := painting(t, e, Options{})
	client := r.client()
	t.Run("whole", func(t *testing.T) {
		got, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Prompt: "a cat", N: openai.Int(2),
			Size: "64x32", Model: "gpt-image-1"}, option.WithJSONSet("seed", 7), option.WithJSONSet("steps", 3))
		require.NoError(t, err)
		require.Len(t, got.Data, 2)
		require.Equal(t, [3]int{64, 32, 7}, redOf(t, got.Data[0].B64JSON))
		require.Equal(t, [3]int{64, 32, 8}, redOf(t, got.Data[1].B64JSON), "seeds follow one another")
		require.EqualValues(t, 2*64*32/256, got.Usage.OutputTokens)
		o := <-e.orders
		require.Equal(t, "a cat", o.Prompt)
		require.Equal(t, 3, o.Steps)
		<-e.orders
		data, err := base64.StdEncoding.DecodeString(got.Data[0].B64JSON)
		require.NoError(t, err)
		require.Contains(t, string(data), "a cat\nSteps: 3, CFG scale: 0, Seed: 7, Size: 64x32")
	})
	t.Run("usual", func(t *testing.T) {
		got, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Prompt: "a cat"})
		require.NoError(t, err)
		require.Equal(t, 1024, redOf(t, got.Data[0].B64JSON)[1])
		o := <-e.orders
		require.Equal(t, 8, o.Steps)
		require.Zero(t, o.Guidance)
	})
	t.Run("stream", func(t *testing.T) {
		stream := client.Images.GenerateStreaming(t.Context(), openai.ImageGenerateParams{Prompt: "a cat", Size: "64x64",
			PartialImages: openai.Int(2)}, option.WithJSONSet("seed", 9))
		said := []string{}
		for stream.Next() {
			at := stream.Current()
			said = append(said, fmt.Sprint(at.Type, " ", at.PartialImageIndex, " ", redOf(t, at.B64JSON)))
		}
		require.NoError(t, stream.Err())
		require.Equal(t, []string{"image_generation.partial_image 0 [64 64 102]", "image_generation.partial_image 1 [64 64 105]",
			"image_generation.completed 0 [64 64 9]"}, said)
		<-e.orders
	})
	t.Run("edit", func(t *testing.T) {
		var file bytes.Buffer
		require.NoError(t, coloured(100, 50, 30).WritePNG(&file))
		got, err := client.Images.Edit(t.Context(), openai.ImageEditParams{Prompt: "a dog",
			Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(&file, "in.png", "image/png")}})
		require.NoError(t, err)
		require.Equal(t, 96, redOf(t, got.Data[0].B64JSON)[0], "the size is its own, in whole sixteens")
		o := <-e.orders
		require.Equal(t, [2]int{96, 48}, [2]int{o.Init.Width, o.Init.Height})
		require.InDelta(t, 30, o.Init.Pix[0], 1)
		require.InDelta(t, 0.6, o.Strength, 1e-6)
	})
}

// form is a form with a picture, if there is one, and fields.
func form(t *testing.T, image []byte, fields ...string) (media string, body io.Reader) {
	t.Helper()
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	if image != nil {
		p, err := w.CreateFormFile("image", "in.png")
		require.NoError(t, err)
		_, err = p.Write(image)
		require.NoError(t, err)
	}
	for i := 0; i < len(fields); i += 2 {
		require.NoError(t, w.WriteField(fields[i], fields[i+1]))
	}
	require.NoError(t, w.Close())
	return w.FormDataContentType(), &text
}

// TestImagesRefuse: what is wrong, or too much, is said before anything is made.
func TestImagesRefuse(t *testing.T) {
	e := newEasel("one", "two")
	r := painting(t, e, Options{})
	for _, c := range []struct{ fields, want string }{
		{`"prompt":"x","size":"1000x1000"`, "size is 1000 × 1000 pixels: want multiples of 16 from 16 to 4096"},
		{`"prompt":"x","size":"1000000000x16"`, "size is 1000000000 × 16 pixels"},
		{`"prompt":"x","size":"9x"`, `size is \"9x\": want \"auto\"`},
		{`"prompt":"x","size":"4096x4096"`, "the pictures have 16777216 pixels together"},
		{`"prompt":"x","size":"2048x2048","n":3`, "the pictures have 12582912 pixels together"},
		{`"prompt":"x","n":5`, "n is 5"}, {`"prompt":"x","steps":101`, "steps is 101"}, {`"prompt":""`, "the prompt has 0 bytes"},
		{`"prompt":"` + strings.Repeat("x", 40_000) + `"`, "the prompt has 40000 bytes"},
		{`"prompt":"x","response_format":"url"`, `response_format is \"url\": want \"b64_json\"`},
		{`"prompt":"x","output_format":"webp"`, `want \"png\"`}, {`"prompt":"x","partial_images":4`, "partial_images is 4"},
		{`"prompt":"x","model":"three"`, `makes no pictures here: those that do are [\"one\" \"two\"]`}, {`"prompt":5`, "prompt is 5"},
	} {
		status, body := r.post(t, "/v1/images/generations", "{"+c.fields+"}")
		require.GreaterOrEqual(t, status, 400)
		require.Less(t, status, 500, body)
		require.Contains(t, body, c.want)
	}
	var file bytes.Buffer
	require.NoError(t, coloured(20, 20, 3).WritePNG(&file))
	huge := bytes.Replace(file.Bytes(), []byte("\x00\x00\x00\x14\x00\x00\x00\x14"), []byte("\x00\x01\x00\x00\x00\x01\x00\x00"), 1)
	for _, c := range []struct {
		image  []byte
		fields []string
		want   string
	}{
		{nil, []string{"prompt", "x"}, "image is missing"}, {[]byte("no picture"), []string{"prompt", "x"}, "image: "},
		{huge, []string{"prompt", "x"}, "image: "}, {file.Bytes(), []string{"prompt", "x", "mask", "m"}, "mask is not supported"},
		{file.Bytes(), []string{"prompt", "x", "image", "again"}, "there is more than one image"},
		{file.Bytes(), []string{"prompt", "x", "n", "9"}, "n is 9"}, {file.Bytes(), []string{"prompt", "x", "size", "7x7"}, "size is 7 × 7"},
		{file.Bytes(), []string{"prompt", strings.Repeat("x", 70_000)}, "has more than 65536 bytes"},
		{file.Bytes(), strings.Fields(strings.Repeat("a b ", 70)), "more than 64 parts"},
	} {
		media, body := form(t, c.image, c.fields...)
		got, err := r.http.Post(r.url+"/v1/images/edits", media, body)
		require.NoError(t, err)
		status, text := read(t, got)
		require.Equal(t, http.StatusBadRequest, status, text)
		require.Contains(t, text, c.want)
	}
	status, body := r.post(t, "/v1/images/edits", `{"prompt":"x"}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "the body is no form")
	require.Empty(t, e.orders, "nothing was made")
}

// TestImagesUsual: what a request leaves open is what its model is used to.
func TestImagesUsual(t *testing.T) {
	e := newEasel("one", "two")
	r := painting(t, e, Options{})
	for _, c := range []struct {
		path, fields string
		steps        int
		guidance     float64
	}{
		{"/v1/images/generations", `"size":"16x16"`, 8, 0},
		{"/v1/images/generations", `"size":"16x16","model":"two"`, 28, 3.5},
		{"/v1/images/generations", `"size":"16x16","model":"two","steps":3,"guidance":2`, 3, 2},
		{"/sdapi/v1/txt2img", `"width":16,"height":16,"override_settings":{"sd_model_checkpoint":"two"}`, 28, 3.5},
		{"/sdapi/v1/txt2img", `"width":16,"height":16,"steps":4`, 4, 0},
	} {
		status, body := r.post(t, c.path, `{"prompt":"x",`+c.fields+`}`)
		require.Equal(t, http.StatusOK, status, body)
		o := <-e.orders
		require.Equal(t, c.steps, o.Steps, c.fields)
		require.InDelta(t, c.guidance, o.Guidance, 0, c.fields)
	}
}

// TestImagesEnd: a client that goes away ends its picture, and who waits is next; what fails is told, in a stream too.
func TestImagesEnd(t *testing.T) {
	e := newEasel("painter")
	e.goes = make(chan struct{})
	r := painting(t, e, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/images/generations", strings.NewReader(`{"prompt":"one"}`))
		if err == nil {
			_, err = r.http.Do(q) //nolint:bodyclose // there is no answer
		}
		first <- err
	}()
	require.Equal(t, "one", (<-e.orders).Prompt)
	second := make(chan string, 1)
	go func() {
		_, body := r.post(t, "/v1/images/generations", `{"prompt":"two","size":"16x16","steps":1}`)
		second <- body
	}()
	select {
	case <-e.orders:
		require.Fail(t, "two pictures are made at a time")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	require.ErrorContains(t, <-e.left, "the client has gone")
	require.Equal(t, "two", (<-e.orders).Prompt)
	e.goes <- struct{}{}
	require.Contains(t, <-second, "b64_json")

	e.fails = errors.New("no memory")
	status, body := r.post(t, "/v1/images/generations", `{"prompt":"x","size":"16x16"}`)
	require.Equal(t, http.StatusInternalServerError, status)
	require.NotContains(t, body, "no memory", "reasons are in the log")
	status, body = r.post(t, "/v1/images/generations", `{"prompt":"x","size":"16x16","stream":true}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "event: error\ndata: {\"error\":{\"message\":\"the request failed here")
	require.Contains(t, r.log.String(), "no memory")
	e.fails = fmt.Errorf("%w: an actor keeps failing", supply.ErrFailed)
	status, body = r.post(t, "/v1/images/generations", `{"prompt":"x","size":"16x16"}`)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "what reads the weights of the picture's model has failed")
	status, body = r.post(t, "/v1/images/generations", `{"prompt":"x","size":"16x16","stream":true}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "event: error\ndata: {\"error\":{\"message\":\"what reads the weights of the picture's model has failed")
	r.log.forget()
	_, counted := r.get(t, "/metrics")
	for _, line := range []string{`pictures_total{end="left",model="painter"} 1`, `pictures_total{end="made",model="painter"} 1`,
		`pictures_total{end="failed",model="painter"} 4`, `picture_steps_total{model="painter"} 1`,
		`picture_seconds_count{model="painter"} 1`, `pictures_making{model="painter"} 0`} {
		require.Contains(t, counted, "\nsluice_"+line+"\n")
	}
}

// TestTxt2img: front-ends of stable-diffusion-webui get pictures, and hear how far their own have come.
func TestTxt2img(t *testing.T) {
	e := newEasel("painter")
	e.goes = make(chan struct{})
	r := painting(t, e, Options{APIKeys: []string{"mine", "yours"}})
	get := func(key, path string) (said map[string]any) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/sdapi/v1/"+path, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+key)
		got, err := r.http.Do(q)
		require.NoError(t, err)
		status, body := read(t, got)
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &said), body)
		return said
	}
	require.Zero(t, get("mine", "progress")["progress"])
	answer := make(chan string, 1)
	go func() {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/sdapi/v1/txt2img", strings.NewReader(
			`{"prompt":"a cat","negative_prompt":"a dog","width":64,"height":32,"steps":4,"cfg_scale":2.5,"seed":7,"n_iter":2,
			"sampler_name":"Euler a","restore_faces":false}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		q.Header.Set("Authorization", "Bearer mine")
		got, err := r.http.Do(q)
		if err != nil {
			answer <- err.Error()
			return
		}
		_, body := read(t, got)
		answer <- body
	}()
	o := <-e.orders
	require.Equal(t, [2]string{"a cat", "a dog"}, [2]string{o.Prompt, o.Negative})
	require.InDelta(t, 2.5, o.Guidance, 1e-6)
	e.goes <- struct{}{}
	e.goes <- struct{}{} // it has heard of the first step
	require.Eventually(t, func() bool { return get("mine", "progress")["progress"].(float64) == 0.25 }, patient, 1e6)
	said := get("mine", "progress")
	require.Equal(t, [3]int{2, 2, 101}, redOf(t, said["current_image"].(string)))
	require.Nil(t, get("mine", "progress?skip_current_image=true")["current_image"])
	require.Zero(t, get("yours", "progress")["progress"], "each key hears of its own")
	require.Nil(t, get("yours", "progress")["current_image"])
	close(e.goes)
	var got struct {
		Images []string
		Info   string
	}
	require.NoError(t, json.Unmarshal([]byte(<-answer), &got))
	require.Len(t, got.Images, 2)
	require.Equal(t, [3]int{64, 32, 8}, redOf(t, got.Images[1]))
	require.Contains(t, got.Info, `"all_seeds":[7,8]`)
	require.Contains(t, got.Info, `Negative prompt: a dog`)
	require.Zero(t, get("mine", "progress")["progress"], "it is over")
	require.Equal(t, "painter", get("mine", "options")["sd_model_checkpoint"])
}

// TestTxt2imgRefuses: dimensions and counts have bounds, and faults have that program's shape.
func TestTxt2imgRefuses(t *testing.T) {
	e := newEasel("painter")
	r := painting(t, e, Options{})
	for fields, want := range map[string]string{
		`"prompt":"x","width":520`: "width, height is 520 × 512 pixels", `"prompt":"x","batch_size":2,"n_iter":3`: "make 6 pictures",
		`"prompt":"x","height":100000`: "height is 100000", `"prompt":"x","override_settings":5`: "override_settings",
	} {
		status, body := r.post(t, "/sdapi/v1/txt2img", "{"+fields+"}")
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, body, `"detail":"`)
		require.Contains(t, body, want)
	}
	require.Empty(t, e.orders)
	for path, want := range map[string]string{"sd-models": `"title":"painter"`, "samplers": `"name":"Euler"`} {
		_, body := r.get(t, "/sdapi/v1/"+path)
		require.Contains(t, body, want)
	}
	_, body := r.get(t, "/")
	require.Contains(t, body, "POST /v1/images/generations")
	require.Contains(t, body, "stable-diffusion-webui's API")
}

// TestImageModelsAreListed: models that make pictures are listed with what they can do, described by name, and refuse
// to write; Ollama's and Anthropic's lists, whose clients would ask them for text, do without.
func TestImageModelsAreListed(t *testing.T) {
	r := painting(t, newEasel("painter", "org/other"), Options{})
	type object struct {
		ID     string
		Can    []string `json:"capabilities"`
		Status struct{ Value string }
	}
	var said struct{ Data []object }
	_, body := r.get(t, "/v1/models")
	require.NoError(t, json.Unmarshal([]byte(body), &said))
	painters := map[string]string{}
	for _, o := range said.Data {
		if slices.Contains(o.Can, "image") {
			require.Equal(t, []string{"image"}, o.Can)
			painters[o.ID] = o.Status.Value
		}
	}
	require.Equal(t, map[string]string{"painter": "loaded", "org/other": "loaded"}, painters)
	require.Greater(t, len(said.Data), len(painters), "beside those that write")
	var one object
	status, body := r.get(t, "/v1/models/org/other")
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Equal(t, "org/other", one.ID)
	status, _ = r.get(t, "/v1/models/nobody")
	require.Equal(t, http.StatusNotFound, status)
	_, body = r.get(t, "/api/tags")
	require.NotContains(t, body, "painter")
	for path, fields := range map[string]string{"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}]`,
		"/v1/completions": `"prompt":"x"`} {
		status, body = r.post(t, path, `{"model":"painter",`+fields+`}`)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, body, "painter makes pictures, and no text: ask POST /v1/images/generations")
	}
}

// TestNoImages: a server whose models make no pictures has no paths for them.
func TestNoImages(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, path := range []string{"/v1/images/generations", "/sdapi/v1/txt2img"} {
		status, _ := r.post(t, path, `{"prompt":"x"}`)
		require.Equal(t, http.StatusNotFound, status)
	}
	_, body := r.get(t, "/")
	require.NotContains(t, body, "pictures of a text")
}
