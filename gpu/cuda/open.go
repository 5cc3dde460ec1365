//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"os"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/internal/backend"
)

// libraryVariable is the environment variable that names another file of the driver, for tests of whole programs.
const libraryVariable = "SLUICE_CUDA_LIBRARY"

// physical lists the driver's cards.
func physical(o *Options) ([]*cu.Physical, error) {
	path := o.Library
	if path == "" {
		path = os.Getenv(libraryVariable)
	}
	lib, err := cu.Open(path)
	if err != nil {
		return nil, err
	}
	return lib.Devices()
}

// Open opens the card with a number in the driver's order, from 0 on. A card that is lost is opened again by gpu/exec.
func Open(number int, o Options) (backend.Device, error) {
	d, err := exec.New(func() (driver.Device, error) { return openDevice(number, &o) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

// OpenTeam opens cards that compute each layer together.
func OpenTeam(numbers []int, o Options) (backend.Device, error) {
	var all []*exec.Device
	for _, n := range numbers {
		d, err := exec.New(func() (driver.Device, error) { return openDevice(n, &o) })
		if err != nil {
			for _, d := range all {
				err = errors.Join(err, d.Close())
			}
			return nil, err
		}
		all = append(all, d)
	}
	t, err := exec.NewTeam(all...)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// openDevice opens a card.
func openDevice(number int, o *Options) (*device, error) {
	all, err := physical(o)
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= len(all) {
		return nil, fmt.Errorf("there is no CUDA device %d: there are %d", number, len(all))
	}
	c, err := all[number].Open()
	if err != nil {
		return nil, err
	}
	d, err := newDevice(c, o)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return d, nil
}

// List describes all cards, in the order of their numbers.
func List(o Options) ([]Found, error) {
	all, err := physical(&o)
	var list []Found
	for _, p := range all {
		f := Found{Name: p.Facts.Name, Major: p.Facts.Major, Minor: p.Facts.Minor, Memory: int64(p.Facts.Memory),
			Processors: p.Facts.Processors, Missing: p.Missing()}
		if c, err := p.Open(); err == nil {
			f.Driver = driverOf(c)
			if free, _, err := c.Memory(); err == nil {
				f.Free = int64(free)
			}
			_ = c.Close() // nothing was made on it
		}
		list = append(list, f)
	}
	return list, err
}
