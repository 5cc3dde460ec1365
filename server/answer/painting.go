package answer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/picture"
)

// Painter makes pictures of texts, by models that have names.
type Painter interface {
	Names() []string
	// Usual is what a model takes of an order that leaves it open.
	Usual(name string) paint.Usual
	// Draw makes a picture, one at a time.
	Draw(ctx context.Context, name string, o *paint.Order) (*picture.Bitmap, error)
}

// Gallery hears of the pictures that a model makes.
type Gallery interface {
	Begun(model string)
	Stepped(model string)
	// Ended says how: made, failed, or left, whose client had gone.
	Ended(model, how string, took time.Duration)
}

// PictureModels lists the models that make pictures.
func (d *directory) PictureModels() []string {
	if d.Painter == nil {
		return nil
	}
	return d.Painter.Names()
}

// MakesPictures says whether a name is that of a model that makes pictures, and of none that answers.
func (d *directory) MakesPictures(name string) bool {
	return slices.Contains(d.PictureModels(), name) && !slices.Contains(d.models.Names(), name)
}

// Limits of a request for pictures.
const (
	MaxPictures      = 4
	MaxPictureSide   = 4096
	MaxPicturePixels = 8 << 20 // of all pictures together
	MaxPictureSteps  = 100
	MaxPicturePrompt = 32 << 10 // bytes

	pictureSide = 16 // sides are multiples of it
	pictureCost = 8  // bytes of memory that a pixel is charged for: of the bitmap, and of the file that is made of it
)

// Painting is a decoded request for pictures.
type Painting struct {
	paint.Order
	Model string
	N     int // pictures, whose seeds follow one another
}

// painting is how far the pictures of clients have come.
type painting struct {
	mu  sync.Mutex
	now map[string]*Painted // by client: of its newest request
}

// Painted is how far a request's pictures have come.
type Painted struct {
	paint.Progress
	Picture, Pictures int // that is made now, from 0; of so many
	Began             time.Time
}

// Painted says how far the pictures of a client have come; ok is false if none are made.
func (s *Service) Painted(client string) (p Painted, ok bool) {
	s.painting.mu.Lock()
	defer s.painting.mu.Unlock()
	if at := s.painting.now[client]; at != nil {
		return *at, true
	}
	return p, false
}

// Check bounds a painting, before anything is paid for it. size names the fields that say it.
func (p *Painting) Check(size string) *wire.Fault {
	for _, n := range []int{p.Width, p.Height} {
		if n < pictureSide || n > MaxPictureSide || n%pictureSide != 0 {
			return wire.Invalid(size, "invalid_value", "%s is %d × %d pixels: want multiples of %d from %d to %d", size, p.Width,
				p.Height, pictureSide, pictureSide, MaxPictureSide)
		}
	}
	if all := p.N * p.Width * p.Height; all > MaxPicturePixels {
		return wire.Invalid(size, "invalid_value", "the pictures have %d pixels together: want at most %d, in fewer or smaller ones",
			all, MaxPicturePixels)
	}
	if len(p.Prompt) == 0 || len(p.Prompt) > MaxPicturePrompt || len(p.Negative) > MaxPicturePrompt {
		return wire.Invalid("prompt", "invalid_value", "the prompt has %d bytes, and what is not to be seen %d: want 1 to %d, and at "+
			"most as many", len(p.Prompt), len(p.Negative), MaxPicturePrompt)
	}
	return nil
}

// Paints finds the model that a request for pictures names, and has it say what the request leaves open. If there is
// only one, it is found by any name.
func (s *Service) Paints(p *Painting) *wire.Fault {
	names := s.Painter.Names()
	switch {
	case len(names) == 1 || p.Model == "":
		p.Model = names[0]
	case !slices.Contains(names, p.Model):
		f := wire.Refused(fasthttp.StatusNotFound, "model_not_found", "the model %s makes no pictures here: those that do are %q",
			wire.Shown(p.Model), names)
		f.Param = "model"
		return f
	}
	usual := s.Painter.Usual(p.Model)
	if p.Steps == 0 {
		p.Steps = usual.Steps
	}
	if p.Guidance == 0 {
		p.Guidance = usual.Guidance
	}
	return nil
}

// Easel waits until the exchange may make its pictures, which it pays for, and keeps the place until done is called.
// Its body is not needed any more.
func (s *Service) Easel(x *exchange.Exchange, p *Painting) (done func(), fault *wire.Fault) {
	x.Watch()
	x.Spend(bill.Receive)
	x.Release()
	p.Salt = x.Salt
	k := keep(s.kept, x)
	err := k.add(x.Context, int64(p.N)*int64(p.Width)*int64(p.Height)*pictureCost)
	if err == nil {
		err = s.easels.take(x.Context, x, 1)
	}
	x.Spend(bill.Queue)
	if err != nil {
		return nil, explain(x, &Order{}, err)
	}
	return func() { s.easels.leave(x, 1) }, nil
}

// Paint makes the pictures of a request that has an easel, files of PNG. tell hears after each step how far a picture
// has come; done has each picture as soon as it is there. Either may be nil.
func (s *Service) Paint(x *exchange.Exchange, p *Painting, tell func(picture int, at paint.Progress),
	done func(picture int, file []byte)) *wire.Fault {
	now := &Painted{Pictures: p.N, Began: time.Now(), Progress: paint.Progress{Steps: p.Steps - p.First()}}
	s.painting.mu.Lock()
	s.painting.now[x.Client] = now
	s.painting.mu.Unlock()
	defer func() {
		s.painting.mu.Lock()
		defer s.painting.mu.Unlock()
		if s.painting.now[x.Client] == now {
			delete(s.painting.now, x.Client)
		}
	}()
	for i := range p.N {
		o := p.Order
		o.Seed += uint64(i)
		o.Tell = func(at paint.Progress) {
			s.painting.mu.Lock()
			now.Picture, now.Progress = i, at
			s.painting.mu.Unlock()
			s.Gallery.Stepped(p.Model)
			if tell != nil {
				tell(i, at)
			}
		}
		file, err := s.draw(x, p.Model, &o)
		if err != nil {
			return explain(x, &Order{}, err)
		}
		done(i, file)
	}
	return nil
}

// draw makes one picture, a file of PNG.
func (s *Service) draw(x *exchange.Exchange, name string, o *paint.Order) (_ []byte, err error) {
	began := time.Now()
	s.Gallery.Begun(name)
	defer func() { s.Gallery.Ended(name, ended(x, err), time.Since(began)) }()
	b, err := s.Painter.Draw(x.Context, name, o)
	if cause := context.Cause(x.Context); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := b.WritePNG(&file, picture.Text{Key: "parameters", Value: Parameters(o)}); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// ended is how a picture ended.
func ended(x *exchange.Exchange, err error) string {
	switch {
	case err == nil:
		return "made"
	case x.Context.Err() != nil:
		return "left"
	}
	return "failed"
}

// Parameters say how a picture was made, as other programs write it into theirs.
func Parameters(o *paint.Order) string {
	text := o.Prompt
	if o.Guidance > 1 && o.Negative != "" {
		text += "\nNegative prompt: " + o.Negative
	}
	text += fmt.Sprintf("\nSteps: %d, CFG scale: %v, Seed: %d, Size: %dx%d", o.Steps, o.Guidance, o.Seed, o.Width, o.Height)
	if o.Init != nil {
		text += fmt.Sprintf(", Denoising strength: %v", o.Strength)
	}
	return text
}

// Opened decodes a picture to begin with, which is made as large as those that are wanted. Sides of 0 become its own,
// made whole and small enough.
func (s *Service) Opened(x *exchange.Exchange, p *Painting, field string, data []byte) *wire.Fault {
	wrong := func(err error) *wire.Fault { return wire.Invalid(field, "invalid_value", "%s: %v", field, err) }
	said, err := picture.Inspect(data)
	if err != nil {
		return wrong(err)
	}
	if p.Width == 0 {
		p.Width, p.Height = whole(said.Width, said.Height, p.N)
	}
	if fault := p.Check("size"); fault != nil {
		return fault
	}
	done, err := x.Decode(said.Bytes)
	if err != nil {
		return explain(x, &Order{}, err)
	}
	defer done()
	b, err := picture.Decode(data)
	if err != nil {
		return wrong(err)
	}
	p.Init = b.Resized(p.Width, p.Height)
	return nil
}

// whole are sides as those of a picture, that n pictures may have.
func whole(w, h, n int) (int, int) {
	for n*w*h > MaxPicturePixels/2 || w > MaxPictureSide || h > MaxPictureSide {
		w, h = w*7/8, h*7/8
	}
	return max(w/pictureSide, 1) * pictureSide, max(h/pictureSide, 1) * pictureSide
}
