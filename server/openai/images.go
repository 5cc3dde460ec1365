package openai

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

// What a request for pictures has that does not say it.
const (
	usualSide     = 1024
	usualStrength = 0.6
	mostPartials  = 3
)

// imageRoutes are the paths that make pictures, if anything here does.
func (a *api) imageRoutes() []answer.Route {
	if a.Painter == nil {
		return nil
	}
	const post = fasthttp.MethodPost
	return []answer.Route{
		{Method: post, Path: "/v1/images/generations", Help: "pictures of a text", Handle: a.generateImages},
		{Method: post, Path: "/v1/images/edits", Help: "the same, beginning with a picture", Handle: a.editImages},
		{Method: post, Path: "/images/generations", Name: "/v1/images/generations", Handle: a.generateImages},
		{Method: post, Path: "/images/edits", Name: "/v1/images/edits", Handle: a.editImages},
	}
}

// images is a decoded request for pictures.
type images struct {
	answer.Painting
	stream   bool
	partials int    // previews of each picture in a stream
	event    string // begins the names of a stream's events
}

// generateImages answers POST /v1/images/generations.
func (a *api) generateImages(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	o, fault := a.decodeImages(wire.ReadFields(body.Text, body.Budget))
	if fault != nil {
		return fault
	}
	if o.event = "image_generation"; o.Width == 0 {
		o.Width, o.Height = usualSide, usualSide
	}
	if fault := o.Check("size"); fault != nil {
		return fault
	}
	return a.paint(rc, x, o)
}

// decodeImages decodes the fields that both endpoints have. Sides are 0 if they are left to us.
func (a *api) decodeImages(f *wire.Fields) (*images, *wire.Fault) {
	o := &images{Painting: answer.Painting{N: 1}}
	f.Text("model", &o.Model)
	f.Text("prompt", &o.Prompt)
	f.Text("negative_prompt", &o.Negative)
	f.Count("n", 1, answer.MaxPictures, &o.N)
	f.Count("steps", 1, answer.MaxPictureSteps, &o.Steps)
	guidance, strength := float32(0), float32(usualStrength)
	f.Number("guidance", 0, 100, &guidance)
	f.Number("strength", 0.01, 1, &strength)
	o.Guidance, o.Strength = float64(guidance), float64(strength)
	seed := int64(-1)
	if f.Integer("seed", -1, 1<<53, &seed); seed < 0 {
		seed = rand.Int64N(1 << 53)
	}
	o.Seed = uint64(seed)
	f.Flag("stream", &o.stream)
	f.Count("partial_images", 0, mostPartials, &o.partials)
	choose(f, "response_format", "b64_json")
	choose(f, "output_format", "png")
	f.Text("user", new(string))
	o.Width, o.Height = sides(f)
	if f.Fault != nil {
		return nil, f.Fault
	}
	return o, a.Paints(&o.Painting)
}

// choose refuses a field that asks for anything but the only value there is.
func choose(f *wire.Fields, name, only string) {
	text := only
	if f.Text(name, &text); text != only && f.Fault == nil {
		f.Wrong(name, strconv.Quote(text), strconv.Quote(only))
	}
}

// sides decodes the size of a picture; 0: it is left to us.
func sides(f *wire.Fields) (w, h int) {
	text, rest := "auto", ""
	f.Text("size", &text)
	if text == "auto" || text == "" {
		return 0, 0
	}
	if n, _ := fmt.Sscanf(text+" ", "%dx%d%s", &w, &h, &rest); n != 2 || w < 1 || h < 1 {
		if f.Fault == nil {
			f.Wrong("size", strconv.Quote(text), `"auto", or two numbers such as "1024x1024"`)
		}
		return 0, 0
	}
	return w, h
}

// paint makes the pictures and answers with them, whole or as a stream.
func (a *api) paint(rc *fasthttp.RequestCtx, x *exchange.Exchange, o *images) *wire.Fault {
	done, fault := a.Easel(x, &o.Painting)
	if fault != nil {
		return fault
	}
	created := time.Now().Unix()
	if o.stream {
		x.Stream(rc, "text/event-stream", imageFault(nil, wire.Internal(x.ID)), func(w *exchange.Writer) {
			defer done()
			s := imageStream{o, w, created, 0}
			if fault := a.Paint(x, &o.Painting, s.partial, s.completed); fault != nil {
				x.Failed = fault.Text
				w.Send(imageFault(nil, fault)) //nolint:errcheck // there is nobody left to tell
			}
		})
		return nil
	}
	defer done()
	files := make([][]byte, 0, o.N)
	if fault := a.Paint(x, &o.Painting, nil, func(_ int, file []byte) { files = append(files, file) }); fault != nil {
		return fault
	}
	x.Whole(rc, "application/json", o.whole(files, created))
	return nil
}

// whole is the answer that is no stream, in pieces.
func (o *images) whole(files [][]byte, created int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := strconv.AppendInt([]byte(`{"created":`), created, 10)
		dst = append(dst, `,"data":[`...)
		for i, file := range files {
			if i > 0 {
				dst = append(dst, ',')
			}
			if !yield(append(dst, `{"b64_json":"`...)) {
				return
			}
			const piece = 3 << 13 // no padding within a file
			for dst = dst[:0]; len(file) > 0; file = file[min(piece, len(file)):] {
				if !yield(base64.StdEncoding.AppendEncode(nil, file[:min(piece, len(file))])) {
					return
				}
			}
			dst = append(dst, `"}`...)
		}
		dst = append(dst, ']')
		yield(append(o.described(dst), '}'))
	}
}

// described appends what pictures are, and what they count as: an image token for each square of 16 pixels.
func (o *images) described(dst []byte) []byte {
	dst = fmt.Appendf(dst, `,"background":"opaque","output_format":"png","quality":"auto","size":"%dx%d"`, o.Width, o.Height)
	n := o.N * o.Width * o.Height / (16 * 16)
	return fmt.Appendf(dst, `,"usage":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},`+
		`"output_tokens":%d,"total_tokens":%d}`, n, n)
}

// imageStream writes the events of a stream.
type imageStream struct {
	*images
	w       *exchange.Writer
	created int64
	shown   int // previews of the picture that is made
}

// partial sends a preview after so many steps that each of them comes as long after the one before.
func (s *imageStream) partial(_ int, at paint.Progress) {
	if at.Step == 1 {
		s.shown = 0
	}
	for s.shown < s.partials && at.Step*(s.partials+1) >= (s.shown+1)*at.Steps && at.Step < at.Steps {
		var file bytes.Buffer
		if at.Preview().Resized(s.Width, s.Height).WritePNG(&file) != nil {
			return
		}
		s.send("partial_image", file.Bytes(), fmt.Sprintf(`,"partial_image_index":%d`, s.shown))
		s.shown++
	}
}

func (s *imageStream) completed(_ int, file []byte) { s.send("completed", file, "") }

// send sends an event with a picture. A client that does not take it ends the exchange, and so what is made for it.
func (s *imageStream) send(kind string, file []byte, more string) {
	name := s.event + "." + kind
	dst := fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q,\"created_at\":%d,\"b64_json\":\"", name, name, s.created)
	dst = append(base64.StdEncoding.AppendEncode(dst, file), '"')
	dst = s.described(append(dst, more...))
	s.w.Send(append(dst, "}\n\n"...)) //nolint:errcheck // the context says so
}

// imageFault appends the event of an error, which ends a stream.
func imageFault(dst []byte, f *wire.Fault) []byte {
	dst = append(appendFault(append(dst, "event: error\ndata: "...), f), "\n\n"...)
	return dst
}
