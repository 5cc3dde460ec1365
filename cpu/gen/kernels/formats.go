package main

// source is one format of weights: a row of the table.
type source struct {
	name, stem string
	tile, x    int // bytes of a tile and of a block of activations; of one k for float formats
	convert    func(e *emitter, from, to string)
	body       func(b *blocks) // one block; float formats have convert instead
	subs       bool            // sub-blocks have scales, so that their sums and the block's are two
	slots      int             // vectors of the frame that body uses
	gathers    bool            // from a grid, and is slower where other strips are asked for
	keep       []string        // constants that stay in registers: in ymm form the first, which has room
}

func (s source) floats() bool { return s.convert != nil }

const x32, x256 = 40, 352 // bytes of activations for 32 and 256 k

var formats = []source{
	{name: "F32", stem: "f32", tile: 64, x: 4, convert: (*emitter).convertF32},
	{name: "F16", stem: "f16", tile: 32, x: 4, convert: (*emitter).convertF16},
	{name: "BF16", stem: "bf16", tile: 32, x: 4, convert: (*emitter).convertBF16},

	{name: "Q8_0", stem: "q8_0", tile: 16 * 34, x: x32, body: (*blocks).q8_0, keep: []string{"ones", "bit7"}},
	{name: "Q4_0", stem: "q4_0", tile: 16 * 18, x: x32, body: (*blocks).q4_0, keep: []string{"low4", "ones"}},
	{name: "Q4_1", stem: "q4_1", tile: 16 * 20, x: x32, body: (*blocks).q4_1, keep: []string{"low4", "ones"}},
	{name: "Q5_0", stem: "q5_0", tile: 16 * 22, x: x32, body: (*blocks).q5_0, keep: []string{"low4", "bit4", "ones"}},
	{name: "Q5_1", stem: "q5_1", tile: 16 * 24, x: x32, body: (*blocks).q5_1, keep: []string{"low4", "bit4", "ones"}},

	{name: "Q2_K", stem: "q2_K", tile: 16 * 84, x: x256, body: (*blocks).q2_K, subs: true,
		keep: []string{"low2", "low4", "ones"}},
	{name: "Q3_K", stem: "q3_K", tile: 16 * 110, x: x256, body: (*blocks).q3_K, subs: true, slots: 4,
		keep: []string{"low2", "bit2", "low16", "ones", "low4", "bits45"}},
	{name: "Q4_K", stem: "q4_K", tile: 16 * 144, x: x256, body: (*blocks).q4_K, subs: true, slots: bitsAt,
		keep: []string{"low4", "bits45", "even", "byte0", "ones", "high4"}},
	{name: "Q5_K", stem: "q5_K", tile: 16 * 176, x: x256, body: (*blocks).q5_K, subs: true, slots: bitsAt + 8,
		keep: []string{"low4", "bits45", "bit4", "even", "byte0", "ones"}},
	{name: "Q6_K", stem: "q6_K", tile: 16 * 210, x: x256, body: (*blocks).q6_K, subs: true,
		keep: []string{"low6", "bits45", "bits23", "bits67", "low2", "ones"}},

	{name: "IQ4_NL", stem: "iq4_NL", tile: 16 * 18, x: x32, body: (*blocks).iq4_NL,
		keep: []string{"low4", "nonlinear", "nonlinear128", "ones"}},
	{name: "IQ4_XS", stem: "iq4_XS", tile: 16 * 136, x: x256, body: (*blocks).iq4_XS, subs: true, slots: 8,
		keep: []string{"low4", "nonlinear", "nonlinear128", "less128x0", "less128x1", "ones"}},
	{name: "MXFP4", stem: "mxfp4", tile: 16 * 17, x: x32, body: (*blocks).mxfp4,
		keep: []string{"low4", "fp4Doubled16", "ones"}},

	{name: "NVFP4", stem: "nvfp4", tile: 16 * 36, x: 2 * x32, body: (*blocks).nvfp4,
		keep: []string{"low4", "fp4Doubled16", "fp4Doubled", "bytes16", "ones"}},
	{name: "Q1_0", stem: "q1_0", tile: 16 * 18, x: 4 * x32, body: (*blocks).q1_0, keep: []string{"bytes2", "ones"}},
	{name: "Q2_0", stem: "q2_0", tile: 16 * 18, x: 2 * x32, body: (*blocks).q2_0, keep: []string{"low2", "ones"}},
	{name: "TQ1_0", stem: "tq1_0", tile: 16 * 54, x: x256, body: (*blocks).tq1_0,
		keep: []string{"bytes1", "bytes85", "bytes170", "minus1", "ones"}},
	{name: "TQ2_0", stem: "tq2_0", tile: 16 * 66, x: x256, body: (*blocks).tq2_0,
		keep: []string{"low2", "minus1", "ones"}},

	{name: "IQ2_XXS", stem: "iq2_XXS", tile: 16 * 66, x: x256, subs: true, slots: 3, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ2_XXS) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ2", "notLast", "last"}},
	{name: "IQ2_XS", stem: "iq2_XS", tile: 16 * 74, x: x256, subs: true, slots: 3, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ2_XS) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ2", "notLast", "last", "bit8"}},
	{name: "IQ2_S", stem: "iq2_S", tile: 16 * 82, x: x256, subs: true, slots: 3, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ2_S) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ2", "bits89", "nibble0"}},
	{name: "IQ3_XXS", stem: "iq3_XXS", tile: 16 * 98, x: x256, subs: true, slots: 3, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ3_XXS) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ3_XXS", "notLast", "last"}},
	{name: "IQ3_S", stem: "iq3_S", tile: 16 * 110, x: x256, subs: true, slots: 4, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ3_S) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ3_S", "bit8", "low16"}},
	{name: "IQ1_S", stem: "iq1_S", tile: 16 * 50, x: x256, subs: true, slots: 3, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ1_S) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ1", "bits8to10", "low16"}},
	{name: "IQ1_M", stem: "iq1_M", tile: 16 * 56, x: x256, subs: true, slots: 19, gathers: true,
		body: func(b *blocks) { b.grid(&gridIQ1_M) },
		keep: []string{"byte0", "bytes7", "bytes8", "levelsIQ1", "bits8to10", "low16"}},
}

// emitOne writes the routine of a format for one row of activations.
func (s source) emitOne(e *emitter) (name string) {
	name = s.stem + e.Suffix + "x1"
	if s.floats() {
		s.emitFloatRow(e, name)
	} else {
		s.emitBlocksRow(e, name)
	}
	return name
}

// emitFour is for four rows.
func (s source) emitFour(e *emitter) (name string) {
	name = s.stem + e.Suffix + "x4"
	if s.floats() {
		s.emitFloat(e, name)
	} else {
		s.emitBlocks(e, name)
	}
	return name
}

// emitMany writes the panel routine of a format.
func (s source) emitMany(e *emitter) (name string) {
	name = s.stem + e.Suffix + "Panel"
	switch {
	case e.AMX:
		s.emitTiles(e, name)
	case s.floats():
		s.emitFloatPanel(e, name)
	default:
		s.emitPanel(e, name)
	}
	return name
}
