package actors

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/uring"
)

const (
	defaultSequences = 32
	defaultRows      = 512
	maxLogitsBytes   = 64 << 20 // memory for a step's logits
	fullSlabBytes    = 1 << 20  // of most models; smaller where the slabs would be more than slabShare of all weights
	leastSlabBytes   = 64 << 10
	slabShare        = 32
	slabRows         = 64 // a slab holds so many rows of any weight: a multiple of every device's row grain
	leastBlocks      = 8  // of KV, however little memory there is
	spareContexts    = 4  // full contexts that the KV cache holds by default, as memory allows
)

// plan fixes the sizes of everything, and refuses what memory cannot hold.
func (k *core) plan(cfg *Config) error {
	k.layout.KV = cfg.KV
	if k.layout.KV == 0 {
		k.layout.KV = backend.KVF16
	}
	seqs, rows := orDefault(cfg.Sequences, defaultSequences), orDefault(cfg.Rows, defaultRows)
	if err := k.planKV(cfg, seqs, mem.Available()); err != nil {
		return err
	}
	wanted := max(min(rows, maxLogitsBytes/4/k.bound.Vocab), seqs)
	k.limits = batch.Limits{Seqs: seqs, Rows: max(rows, seqs), Wanted: wanted, Beside: max(rows/4, seqs+minRows)}
	k.layout.MaxRows, k.layout.MaxWanted = k.limits.Rows, wanted
	k.slabBytes = k.planSlabs()
	return nil
}

// planKV fixes the context and the size of the KV cache. What was not asked for takes at most a quarter of the
// memory that is available; what was asked for, all of it.
func (k *core) planKV(cfg *Config, seqs int, available int64) error {
	each := max(k.blockBytes(), 1)
	budget := available / 4 / each
	k.ctx = cfg.Context
	if k.ctx <= 0 {
		k.ctx = int(min(int64(k.bound.Context), max(budget, leastBlocks)*kv.BlockSize))
	}
	full := (int64(k.ctx) + kv.BlockSize - 1) / kv.BlockSize
	blocks := int64(cfg.Blocks)
	if blocks <= 0 {
		blocks = max(full, min(full*int64(min(seqs, spareContexts)), budget))
	}
	blocks = max(blocks, full)
	if most := max(available/each, leastBlocks); blocks > most {
		const mib = 1 << 20
		return fmt.Errorf("a context of %d tokens needs a KV cache of %d MiB with what else was asked for, %d MiB are "+
			"available: ask for a context of at most %d tokens", k.ctx, blocks*each/mib, available/mib,
			most*full/blocks*kv.BlockSize)
	}
	k.layout.Blocks = int(blocks)
	return nil
}

// blockBytes is what a block of KV holds, for all layers.
func (k *core) blockBytes() int64 {
	var bytes int64
	for _, l := range k.bound.KV {
		bytes += int64(k.layout.KV.BlockBytes(l))
	}
	return bytes
}

func (k *core) planSlabs() int {
	if k.layout.InPlace != nil {
		return uring.Slack // nothing travels
	}
	total := int64(0)
	for _, g := range k.groups {
		total += g.Bytes
	}
	bytes := int(min(max(total/slabShare/slabCount, leastSlabBytes), fullSlabBytes))
	for ref, w := range k.bound.Weights {
		bytes = max(bytes, int(k.file.Tensors[k.bound.Tensors[ref]].Size)/w.Rows*slabRows)
	}
	return bytes + uring.Slack // reads round outwards to the disk's blocks
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
