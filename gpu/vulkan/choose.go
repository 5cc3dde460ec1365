//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Open opens a device by its number in the order of Vulkan's loader, from 0 on.
func Open(number int, o Options) (backend.Device, error) {
	return openPicked(func(all []*vk.Physical) (*vk.Physical, error) {
		if number < 0 || number >= len(all) {
			return nil, fmt.Errorf("there is no Vulkan device %d: there are %s", number, names(all))
		}
		return all[number], nil
	}, o)
}

// OpenBest opens the device that is likely to be fastest: a discrete card before an integrated one. A device that is a
// CPU is never taken.
func OpenBest(o Options) (backend.Device, error) {
	return openPicked(func(all []*vk.Physical) (*vk.Physical, error) {
		var best *vk.Physical
		for _, p := range all {
			if rank(p) > 0 && (best == nil || rank(p) > rank(best)) {
				best = p
			}
		}
		if best == nil {
			return nil, fmt.Errorf("there is no GPU that can be used: Vulkan has %s", names(all))
		}
		return best, nil
	}, o)
}

// pick chooses one of the loader's devices.
type pick func([]*vk.Physical) (*vk.Physical, error)

// openPicked opens the device that p picks. If that is lost, exec opens it again.
func openPicked(p pick, o Options) (backend.Device, error) {
	d, err := exec.New(func() (driver.Device, error) { return openDevice(p, &o) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

// rank orders devices; 0: the device is used only if somebody names it.
func rank(p *vk.Physical) int {
	if p.Missing() != nil {
		return 0
	}
	return map[vk.Kind]int{vk.Discrete: 3, vk.Virtual: 2, vk.Integrated: 1}[p.Facts.Kind]
}

func names(all []*vk.Physical) string {
	if len(all) == 0 {
		return "none"
	}
	var list []string
	for i, p := range all {
		list = append(list, strconv.Itoa(i)+" "+p.Facts.Name)
	}
	return strings.Join(list, ", ")
}

// List describes all devices, in the order of their numbers, as if they lacked the capabilities named.
func List(without ...string) ([]Found, error) {
	lib, err := vk.OpenWith(vk.Options{Without: without})
	if err != nil {
		return nil, err
	}
	all, err := lib.Devices()
	var list []Found
	for _, p := range all {
		f := &p.Facts
		x := Found{Name: f.Name, Kind: f.Kind.String(), API: f.API.String(), Driver: f.Driver, Missing: p.Missing(),
			Subgroup: int(f.Subgroup.Size), Shared: int64(f.Shared), Auto: rank(p) > 0, Lacks: f.Lacks()}
		for _, h := range f.Heaps {
			if h.Local {
				x.Memory, x.Free = max(x.Memory, int64(h.Size)), max(x.Free, int64(h.Budget)-int64(h.Used))
			}
		}
		if f.Has.Dot4 {
			x.Has = append(x.Has, "integer dot products")
		}
		if f.Has.Float16 {
			x.Has = append(x.Has, "half precision")
		}
		if hasMatrix(f) {
			x.Has = append(x.Has, "cooperative matrices")
		}
		list = append(list, x)
	}
	return list, errors.Join(err, lib.Close())
}
