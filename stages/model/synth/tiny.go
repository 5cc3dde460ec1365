package synth

// Tiny makes a shape as small as its family can be while every kind of layer and of tensor stays: a file of less than a
// megabyte of parameters beside the vocabulary, which the caller chooses.
func (c *Config) Tiny() {
	if c.keyed != nil {
		c.keyed = c.tiny(c)
		return
	}
	least := func(n *int, most int) { *n = min(*n, most) }
	groups := max(c.Heads/max(c.KVHeads, 1), 1)
	least(&c.KVHeads, 2)
	c.Heads = c.KVHeads * min(groups, 2)
	least(&c.HeadDim, 32)
	c.tinyLayers()
	c.Width, c.Window = 128, min(c.Window, 16)
	least(&c.FFN, 256)
	least(&c.ExpertFFN, 64)
	least(&c.SharedFFN, 64)
	least(&c.Experts, 8)
	least(&c.ExpertsUsed, 2)
	least(&c.QueryRank, 64)
	least(&c.KVRank, 64)
	least(&c.StillDim, 32)
	least(&c.RopeDim, 16)
	least(&c.ValueDim, 32)
	least(&c.RouteGroups, 2)
	least(&c.RouteGroupsUsed, 1)
	least(&c.StateSize, 16)
	least(&c.StateHeads, 4)
	least(&c.LinearKeys, 2)
	least(&c.LinearValues, 4)
	least(&c.LinearKeyDim, 32)
	least(&c.LinearValueDim, 32)
	least(&c.Context, 4096)
	least(&c.DraftVocab, 1024)
	if c.TargetWidth > 0 {
		c.TargetWidth = c.Width
	}
	if s := c.Scaling; s != nil && s.Original > 0 {
		small := *s
		small.Original = max(1, c.Context/4)
		c.Scaling = &small
	}
}

// tinyLayers leaves as many layers as have one of each kind.
func (c *Config) tinyLayers() {
	c.LeadingDense = min(c.LeadingDense, 1)
	most := max(4, c.Interval)
	if len(c.FullLayers) > 0 {
		most = max(most, c.FullLayers[0]+2)
	}
	c.Layers = min(c.Layers, most)
}

// LeastVocab is n, or the number of tokens that a model knows by their numbers, if that is more.
func (c *Config) LeastVocab(n int) int {
	const pictures = 8196 // what Chameleon's tokens of pictures end at
	if c.keyed != nil && c.arch == "chameleon" {
		n = max(n, pictures+4)
	}
	return n
}
