package compute

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kvmix"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// CacheFlags say how keys and values are kept.
type CacheFlags struct {
	KV     KVType   `name:"kv" default:"f16" placeholder:"TYPE" help:"Type of the KV cache: ${kvs}, or auto[:BITS], types by layer from the model's profile (kv-profile) that take so many bits of a value. Fewer bits take less memory, and lose more of long texts. Default: f16."`
	KVK    string   `name:"kv-k" enum:",${kv}" default:"" placeholder:"TYPE" help:"Type of the keys in it: these want more bits than values do. Default: that of --kv."`
	KVV    string   `name:"kv-v" enum:",${kvv}" default:"" placeholder:"TYPE" help:"Type of the values in it. Default: that of --kv."`
	KVHost env.Size `name:"kv-host" placeholder:"SIZE" help:"Memory of this machine for what a GPU's KV cache has no room for any more, such as 8G: prompts that begin with it have it copied back instead of computing it again. Default: none."`
}

// KVType is a value of --kv: a type of the cache, or auto with the bits of a value.
type KVType string

// autoKV has types chosen by layer.
const autoKV = "auto"

// UnmarshalText takes a type, auto, or auto:BITS.
func (k *KVType) UnmarshalText(text []byte) error {
	*k = KVType(text)
	if bits, auto := k.auto(); auto {
		if !(bits >= 1 && bits <= 32) {
			return fmt.Errorf("%q: want auto:BITS with the bits of a value, such as auto:4.5", text)
		}
		return nil
	}
	if _, err := backend.ParseKV(string(text)); err != nil {
		return fmt.Errorf("%q is no type: want %s, or auto[:BITS]", text, backend.KVList())
	}
	return nil
}

// Values are what shells complete.
func (*KVType) Values() []string { return append(backend.KVNames(), autoKV) }

// auto returns the bits of a value, and whether types are to be chosen. Bits that cannot be read are 0.
func (k KVType) auto() (bits float64, auto bool) {
	if k == autoKV {
		return kvmix.DefaultBits, true
	}
	text, auto := strings.CutPrefix(string(k), autoKV+":")
	if auto {
		bits, _ = strconv.ParseFloat(text, 64)
	}
	return bits, auto
}

// check refuses flags that contradict each other.
func (f *CacheFlags) check() error {
	if _, auto := f.KV.auto(); auto && f.KVK+f.KVV != "" {
		return env.Usagef("--kv %s chooses the types of keys and values: leave out --kv-k and --kv-v", f.KV)
	}
	return nil
}

// Formats are the formats of a model's caches that the flags ask for, and a note for the user, if there is anything to
// say of them.
func (f *CacheFlags) Formats(e *env.Env, file *gguf.File) (kv backend.KV, note string, err error) {
	bits, auto := f.KV.auto()
	if !auto {
		both := cmp.Or(string(f.KV), backend.KVF16.Name)
		kv, err = backend.MixKV(cmp.Or(f.KVK, both), cmp.Or(f.KVV, both))
		return kv, "", err
	}
	has := func(name string) bool { _, ok := file.Tensor(name); return ok }
	program, err := arch.Record(&file.Meta, has, arch.Options{})
	if err != nil || program.Whole || len(program.KV) == 0 {
		return backend.KVF16, "", nil //nolint:nilerr // who loads the model says what is wrong with it
	}
	name := fmt.Sprintf("%s:%g", autoKV, bits)
	if p := RecallProfile(e, file, program.KV); p != nil {
		types, err := p.Choose(bits)
		if err != nil {
			return kv, "", fmt.Errorf("--kv %s: %w", name, err)
		}
		kv, err = backend.LayersKV(name, types)
		return kv, "", err
	}
	if kv, err = byRule(program.KV, bits); err != nil {
		return kv, "", fmt.Errorf("--kv %s: %w", name, err)
	}
	return kv, fmt.Sprintf("%s has no profile of its KV cache: all layers take %s; sluice kv-profile -m MODEL -f TEXT measures "+
		"which layers want more bits", env.Printable(file.Name), kv), nil
}

// byRule is the same types for all layers, chosen without knowing the model.
func byRule(caches []ir.KVLayer, bits float64) (kv backend.KV, err error) {
	types, err := kvmix.Rule(caches, bits)
	if err != nil {
		return kv, err
	}
	return backend.MixKV(types[0], types[1])
}
