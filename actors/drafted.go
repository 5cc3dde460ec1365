package actors

import (
	"cmp"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// withDrafts returns models with their draft models behind them, and for each the index of the model whose draft model
// it is, or -1. A draft model has as many sequences as its target, of the same length. All of its weights are resident.
// Its cache is not sealed: positions are taken back.
func withDrafts(models []Model) (all []Model, targets []int) {
	for i := range models {
		m := models[i]
		if !m.Speculate {
			m.Draft, m.DraftOnly, m.Heads = nil, false, false
		}
		at := len(all)
		all, targets = append(all, m), append(targets, -1)
		if m.Draft != nil {
			lend(m.File, m.Draft)
			all = append(all, Model{File: m.Draft, KV: backend.KVF16, Context: m.Context, Sequences: m.Sequences,
				Blocks: m.Blocks, Rows: m.Rows, NoRepack: m.NoRepack, head: m.Heads})
			targets = append(targets, at)
		}
	}
	return all, targets
}

// Fits returns an error, which says why, unless the model in one file can guess tokens for that in another.
func Fits(target, draft *gguf.File) error {
	lend(target, draft)
	s, err := specOf(&Model{File: target})
	if err != nil {
		return err
	}
	d, err := specOf(&Model{File: draft})
	if err != nil {
		return err
	}
	_, err = s.fits(d)
	return err
}

// fits returns an error, which says why, unless a model can guess tokens for another one; and the segments of that one
// after which it wants hidden states, if it does.
func (s *spec) fits(draft *spec) (taps []int, err error) {
	switch err := s.vocab.Alike(draft.vocab); {
	case err != nil:
		return nil, fmt.Errorf("%s cannot guess tokens for %s, since their vocabularies differ: %w", draft.info.Name, s.info.Name, err)
	case len(draft.bound.States) > 0:
		return nil, fmt.Errorf("%s cannot guess tokens: it has recurrent states, which cannot be taken back", draft.info.Name)
	case embeds(draft.bound) || draft.bound.Whole || embeds(s.bound):
		return nil, fmt.Errorf("%s cannot guess tokens for %s: a model of texts does that, for another one", draft.info.Name, s.info.Name)
	}
	return s.tapped(draft)
}

// fitDrafts checks that draft models fit their targets, and has their weights come out of the targets' budgets.
func fitDrafts(specs []*spec, asks []place.Ask, targets []int) error {
	for i, target := range targets {
		s := specs[i]
		if target < 0 && s.head {
			return onlyGuesses(s.info.Name, s.info.Architecture)
		}
		if target < 0 {
			continue
		}
		var err error
		if specs[target].taps, err = specs[target].fits(s); err != nil {
			return err
		}
		s.info.Name = "draft of " + specs[target].info.Name
		for d, bytes := range asks[target].Budgets {
			if bytes > 0 && (d == 0) == (len(asks[target].Devices) == 1) {
				if asks[target].Budgets[d] -= s.info.WeightBytes; asks[target].Budgets[d] <= 0 {
					return fmt.Errorf("the draft model's weights alone take %d MiB, more than the budget for weights",
						s.info.WeightBytes>>20)
				}
				asks[i].Budgets[d] = cmp.Or(asks[i].Budgets[d], asks[i].Need(d)) // whatever memory is left meanwhile
			}
		}
	}
	return nil
}

// shortenDrafts has draft models hold no more positions than their targets, and says whether any would.
func shortenDrafts(p *place.Plan, asks []place.Ask, targets []int) (any bool) {
	for i, target := range targets {
		if target >= 0 && (asks[i].Context == 0 && p.Models[i].Context > p.Models[target].Context) {
			asks[i].Context, any = p.Models[target].Context, true
		}
	}
	return any
}
