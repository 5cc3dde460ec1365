package actors

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/backend"
)

// keep has blocks of a model kept in files. It is called before there are actors.
func (x *cacheMemory) keep(s *spec, d backend.Device, log zerolog.Logger) {
	if f := s.kept.Folder; f != nil && s.plan.Kept != nil {
		x.kept = kept{shelf: f.Shelf(s.kind(d)), log: log.With().Str("model", s.info.Name).Str("folder", f.Path()).Logger()}
	}
}

// kind names all that the bytes of a model's blocks depend on, beside the tokens.
func (s *spec) kind(d backend.Device) string {
	var b strings.Builder
	program := s.bound.Program
	traits := d.Traits()
	fmt.Fprintf(&b, "%s\n%s by %q\n%x\n", s.kept.Weights, d.Name(), traits.Driver, sha256.Sum256([]byte(program.String())))
	for _, x := range traits.Devices {
		fmt.Fprintf(&b, "of %s by %q\n", x.Name, x.Driver)
	}
	fmt.Fprintf(&b, "layers on %v, prompts apart: %t, in place: %t\n", s.layout.Devices, s.limits.Apart,
		s.layout.InPlace() != nil)
	fmt.Fprintf(&b, "classes %+v\nstates %+v\n", program.Classes, program.States)
	for i, l := range program.KV {
		fmt.Fprintf(&b, "%+v in %s\n", l, s.layout.KV.Of(i, program.Classes[l.Class]))
	}
	return b.String()
}
