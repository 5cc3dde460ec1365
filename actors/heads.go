package actors

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// In this file heads of models' own files are found, and left out: see Model.Heads.

// HasHead says whether a file has a head that predicts tokens further on and can be run: see Model.Heads.
func HasHead(f *gguf.File) bool {
	_, err := bind(&Model{File: f, KV: backend.KVF16, head: true})
	return err == nil
}

// dropHeads closes the shares of heads that were left out.
func dropHeads(models []Model) (err error) {
	for i := range models {
		if m := &models[i]; m.Heads && m.HeadsIfFit && m.Draft != nil {
			err = errors.Join(err, m.Draft.Close())
			m.Draft, m.Heads, m.DraftOnly = nil, false, false
		}
	}
	return err
}
