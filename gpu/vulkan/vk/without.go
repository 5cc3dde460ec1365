//go:build cgo && linux

package vk

import (
	"fmt"
	"slices"
	"strings"
)

// capability is something that some devices have and others do not, by Vulkan's name if it has one.
type capability struct {
	name   string
	needed bool // no kernel runs without it
	has    func(*Facts) bool
	off    func(*Physical)
}

// capabilities lists the features, and what else can be missing.
func capabilities() []capability {
	all := []capability{
		{"timestamps", false, func(f *Facts) bool {
			return slices.ContainsFunc(f.Queues, func(q QueueFamily) bool { return q.StampBits > 0 })
		}, func(p *Physical) {
			for i := range p.Facts.Queues {
				p.Facts.Queues[i].StampBits = 0
			}
		}},
		{"calibratedTimestamps", false, func(f *Facts) bool { return f.Has.Calibrates },
			func(p *Physical) { p.Facts.Has.Calibrates = false }},
		{"memoryBudget", false, func(f *Facts) bool { return f.Has.Budget }, func(p *Physical) {
			p.Facts.Has.Budget = false
			p.queryMemory()
		}},
		{"externalMemoryHost", false, func(f *Facts) bool { return f.HostAlignment > 0 },
			func(p *Physical) { p.Facts.HostAlignment = 0 }},
		{"transferQueue", false, func(f *Facts) bool {
			return slices.ContainsFunc(f.Queues, func(q QueueFamily) bool {
				return q.Transfer && !q.Compute && !q.Graphics || q.Compute && q.Count > 1
			})
		}, func(p *Physical) {
			for i := range p.Facts.Queues {
				q := &p.Facts.Queues[i]
				q.Count, q.Transfer = 1, q.Transfer && (q.Compute || q.Graphics)
			}
		}},
	}
	for _, f := range flags {
		c := capability{f.name, f.needed, func(x *Facts) bool { return x.Subgroup.Selectable },
			func(p *Physical) { p.Facts.Subgroup.Selectable = false }}
		if f.has != nil {
			c.has = func(x *Facts) bool { return *f.has(&x.Has) }
			c.off = func(p *Physical) {
				*f.has(&p.Facts.Has) = false
				p.Facts.Has.FastDot4 = p.Facts.Has.FastDot4 && p.Facts.Has.Dot4
			}
		}
		all = append(all, c)
	}
	return all
}

// Optional names the capabilities that devices can do without.
func Optional() (names []string) {
	for _, c := range capabilities() {
		if !c.needed {
			names = append(names, c.name)
		}
	}
	return names
}

// Lacks names the optional capabilities that a device lacks.
func (f *Facts) Lacks() (names []string) {
	for _, c := range capabilities() {
		if !c.needed && !c.has(f) {
			names = append(names, c.name)
		}
	}
	return names
}

// everything stands for all optional capabilities.
const everything = "all"

// without removes capabilities from the facts of a device, whether or not it has them.
func (p *Physical) without(names []string) error {
	all := capabilities()
	for _, name := range names {
		known := false
		for _, c := range all {
			if c.name == name || name == everything && !c.needed {
				c.off(p)
				known = true
			}
		}
		if !known {
			list := []string{everything}
			for _, c := range all {
				list = append(list, c.name)
			}
			return fmt.Errorf("a GPU is to be used without %q, which is no capability: want some of %s", name,
				strings.Join(list, ", "))
		}
	}
	return nil
}
