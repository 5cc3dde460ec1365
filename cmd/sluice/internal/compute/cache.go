package compute

import (
	"cmp"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
)

// CacheFlags say how keys and values are kept.
type CacheFlags struct {
	KV     string   `name:"kv" enum:"${kv}" default:"f16" help:"Type of the KV cache: ${kvs}. Fewer bits take less memory, and lose more of long texts."`
	KVK    string   `name:"kv-k" enum:",${kv}" default:"" placeholder:"TYPE" help:"Type of the keys in it: these want more bits than values do. Default: that of --kv."`
	KVV    string   `name:"kv-v" enum:",${kvv}" default:"" placeholder:"TYPE" help:"Type of the values in it. Default: that of --kv."`
	KVHost env.Size `name:"kv-host" placeholder:"SIZE" help:"Memory of this machine for what a GPU's KV cache has no room for any more, such as 8G: prompts that begin with it have it copied back instead of computing it again. Default: none."`
}

// Formats are the formats of K and V that the flags name.
func (f *CacheFlags) Formats() backend.KV {
	kv, _ := backend.MixKV(cmp.Or(f.KVK, f.KV), cmp.Or(f.KVV, f.KV)) // kong has checked both
	return kv
}
