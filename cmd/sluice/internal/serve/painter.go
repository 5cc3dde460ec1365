package serve

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	paints "github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/paint"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/stages/picture"
)

// painter makes pictures on the processor, one at a time, in turns with texts that are computed there.
type painter struct {
	names   []string
	studios map[string]*paint.Studio
	cores   *run.Cores
	log     zerolog.Logger
	bytes   int64 // for weights of a part; 0: all that are free

	mu      sync.Mutex     // held while a picture is made
	device  backend.Device // nil: none was made yet
	weights *supply.Supply // likewise
}

// shared is the cores that texts share with pictures; nil: there are none that make pictures.
func (p *painter) shared() *run.Cores {
	if p == nil {
		return nil
	}
	return p.cores
}

// painters has a server make pictures by the models of --image-model, if there are any.
func (c *Serve) painters(o *server.Options) (closed func() error, err error) {
	if len(c.ImageModels) == 0 {
		return func() error { return nil }, nil
	}
	p := &painter{studios: map[string]*paint.Studio{}, cores: &run.Cores{}, bytes: int64(c.ImageRAM), log: o.Log}
	for _, value := range c.ImageModels {
		m, err := models.ParseNamed(value)
		if err != nil {
			return nil, err
		}
		if m.Name == "" {
			m.Name = filepath.Base(filepath.Clean(m.Path))
		}
		if p.studios[m.Name] != nil {
			return nil, env.Usagef("--image-model has the name %q twice: name them with NAME=FOLDER", m.Name)
		}
		if p.studios[m.Name], err = paint.NewStudio(m.Path, paint.Files{}); err != nil {
			return nil, err
		}
		p.names = append(p.names, m.Name)
	}
	o.Painter, c.painter = p, p
	return p.close, nil
}

// Names implements answer.Painter.
func (p *painter) Names() []string { return p.names }

// Usual implements answer.Painter.
func (p *painter) Usual(name string) paints.Usual { return p.studios[name].Usual }

// Draw implements answer.Painter.
func (p *painter) Draw(ctx context.Context, name string, o *paints.Order) (_ *picture.Bitmap, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	studio := p.studios[name]
	if studio == nil {
		return nil, errors.New("no such model")
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	turns := p.cores.Join()
	defer turns.Part()
	room := paints.Room{Device: paints.Turning(ctx, p.device, turns), Bytes: p.bytes, Supply: p.weights}
	return studio.Draw(ctx, room, o, paint.Compared{})
}

// open makes what pictures are computed with, and makes actors anew that were given up.
func (p *painter) open() (err error) {
	if p.device == nil {
		if p.device, err = cpu.New(0, ""); err != nil {
			return err
		}
	}
	if p.weights != nil && p.weights.Err() != nil {
		if err := p.weights.Close(); err != nil {
			return err
		}
		p.weights = nil
	}
	if p.weights == nil {
		p.weights, err = supply.Open(p.log, nil)
	}
	return err
}

func (p *painter) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.weights != nil {
		err = p.weights.Close()
	}
	if p.device != nil {
		err = errors.Join(err, p.device.Close())
	}
	return err
}
