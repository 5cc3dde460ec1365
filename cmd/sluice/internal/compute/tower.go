package compute

import (
	"fmt"
	"io"
	"os"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/picture"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// AddTower opens how a model sees: the file that the flags name, what is in the model's own folder, or the mmproj file
// beside its file. A model whose own tower cannot be used runs without, which is told if it is to be.
func (f *Flags) AddTower(e *env.Env, m *actors.Model, tell bool) (err error) {
	if f.MMProj != "" {
		if m.Tower, err = gguf.Open(f.MMProj); err != nil {
			return fmt.Errorf("--mmproj: %w", err)
		}
		return nil
	}
	m.TowerIfFits = true
	if checkpoint.Has(m.File.Name) {
		m.Tower, err = namedmodel.OpenTower(m.File.Name)
	} else if path := namedmodel.Projector(m.File.Name); path != "" {
		m.Tower, err = gguf.Open(path)
	}
	if err != nil && tell {
		runsBlind(e, err.Error())
	}
	return nil
}

// runsBlind says that a model runs without its tower.
func runsBlind(e *env.Env, why string) {
	fmt.Fprintln(e.Stderr, "sluice: it runs without seeing pictures: "+env.Visible(why))
}

// mostPicture is the most bytes of a picture's file.
const mostPicture = 64 << 20

// ReadPicture reads a picture's file. What its header says is checked at once.
func ReadPicture(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, mostPicture+1))
	_ = f.Close() // nothing was written
	if err == nil && len(data) > mostPicture {
		err = fmt.Errorf("has more than %s", env.BinarySize(mostPicture))
	}
	if err == nil {
		_, err = picture.Inspect(data)
	}
	if err != nil {
		return nil, env.OnFile(path, err)
	}
	return data, nil
}
