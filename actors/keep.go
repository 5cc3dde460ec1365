package actors

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// keep has blocks of a model kept in files. It is called before there are actors.
func (x *cacheMemory) keep(s *spec, d backend.Device, log zerolog.Logger) {
	x.traits = s.traits(d)
	if f := s.kept.Folder; f != nil && s.plan.Kept != nil {
		x.kept = kept{shelf: f.Shelf(s.kind(d)), log: log.With().Str("model", s.info.Name).Str("folder", f.Path()).Logger()}
	}
}

// kind names all that the bytes of a model's blocks depend on, beside the tokens.
func (s *spec) kind(d backend.Device) string {
	var b strings.Builder
	for _, t := range s.traits(d) {
		fmt.Fprintf(&b, "%s: %s\n", t.Name, t.Value)
	}
	return b.String()
}

// traits are the parts of kind, most telling first.
func (s *spec) traits(d backend.Device) []sessionfiles.Trait {
	program, traits := s.bound.Program, d.Traits()
	var caches, devices strings.Builder
	for i, l := range program.KV {
		fmt.Fprintf(&caches, "%+v in %s\n", l, s.layout.KV.Of(i, program.Classes[l.Class]))
	}
	fmt.Fprintf(&devices, "%s by %q\n", d.Name(), traits.Driver)
	for _, x := range traits.Devices {
		fmt.Fprintf(&devices, "of %s by %q\n", x.Name, x.Driver)
	}
	fmt.Fprintf(&devices, "layers on %v, prompts apart: %t, in place: %t", s.layout.Devices, s.limits.Apart,
		s.layout.InPlace() != nil)
	return []sessionfiles.Trait{
		{Name: "model", Value: s.kept.Weights},
		{Name: "program", Value: fmt.Sprintf("%x", sha256.Sum256([]byte(program.String())))},
		{Name: "type of KV cache", Value: caches.String()},
		{Name: "layout of the cache", Value: fmt.Sprintf("classes %+v\nstates %+v", program.Classes, program.States)},
		{Name: "device, or its arithmetic or driver", Value: devices.String()},
		{Name: "build of sluice", Value: s.kept.Build},
	}
}
