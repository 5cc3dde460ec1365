package quant

import (
	"encoding/binary"
	"fmt"
)

// SplitRun is how many values share a scale and a low of Split: no format changes them more often.
const SplitRun = 16

// CanSplit says whether Split knows the type: all formats of blocks that have a decoder.
func CanSplit(t Type) bool { return HasCodec(t) && t.Block() > 1 }

// Split decodes whole blocks into integers and scales: value i is float32(scales[i/16]·codes[i]) - lows[i/16], bit for
// bit what Dequantize gives but for the sign of 0. It serves devices that compute with all formats in one way.
//
// It uses the decoder: with its units set to 1, a block decodes to whole numbers of eighths, the products of a run's
// scale and its codes. Their greatest common divisor is taken as the scale. A half, a scale and a code together have at
// most 24 bits, so any division of such a product into scale and code is exact.
func Split(t Type, codes []int8, scales, lows []float32, src []byte) error {
	if !CanSplit(t) {
		return fmt.Errorf("%s has no blocks to split", t)
	}
	if err := sameLength(t, len(codes), len(src)); err != nil {
		return err
	}
	if n := len(codes) / SplitRun; len(scales) != n || len(lows) != n {
		return fmt.Errorf("%d values have %d scales and %d lows, want %d", len(codes), len(scales), len(lows), n)
	}
	size, runs := t.Bytes(), t.Block()/SplitRun
	s := splitter{t: t, values: make([]float32, t.Block())}
	for ; len(src) > 0; src = src[size:] {
		s.lows(lows[:runs], src[:size])
		s.codes(codes[:t.Block()], scales[:runs], src[:size])
		codes, scales, lows = codes[t.Block():], scales[runs:], lows[runs:]
	}
	return nil
}

// splitter splits blocks of a type, one after the other.
type splitter struct {
	t      Type
	block  []byte // a changed copy
	values []float32
}

// decode fills values with what a block decodes to after edit changed its units.
func (s *splitter) decode(src []byte, edit func(block []byte)) {
	s.block = append(s.block[:0], src...)
	edit(s.block)
	formats[s.t].decode(s.values, s.block)
}

// lows are the values of a block whose codes all count as 0.
func (s *splitter) lows(lows []float32, src []byte) {
	f := formats[s.t].size
	if f.min == 0 {
		clear(lows)
		return
	}
	s.decode(src, func(b []byte) { binary.LittleEndian.PutUint16(b[f.d:], 0) })
	for i := range lows {
		lows[i] = -s.values[SplitRun*i]
	}
}

func (s *splitter) codes(codes []int8, scales []float32, src []byte) {
	s.decode(src, s.t.unitBlock)
	for i := range scales {
		var eighths [SplitRun]int32
		common := uint32(0)
		for j, v := range s.values[SplitRun*i:][:SplitRun] {
			eighths[j] = int32(8 * v)
			common = divisor(common, uint32(max(eighths[j], -eighths[j])))
		}
		scales[i] = s.t.unit(src, i) * float32(common) / 8
		inverse := 1 / float32(max(common, 1))
		for j, n := range eighths {
			codes[SplitRun*i+j] = int8(int32(float32(n)*inverse+128.5) - 128) // the quotient is whole, but for its rounding
		}
	}
}

// divisor is the greatest common divisor; all numbers divide 0.
func divisor(a, b uint32) uint32 {
	if a != 0 && b%a == 0 { // nearly always
		return a
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// unitBlock sets a block's scales to 1, and its offset to 0.
func (t Type) unitBlock(block []byte) {
	if f := formats[t].size; f.one != nil {
		f.one(block)
	} else {
		f.set(block, 1, 0)
	}
}

// unit is the scale of run i of a block.
func (t Type) unit(block []byte, i int) float32 {
	f := formats[t].size
	if f.get != nil {
		return f.get(block, i)
	}
	return half(block[f.d:])
}

func oneMXFP4(block []byte) { block[0] = 128 }

func runMXFP4(block []byte, _ int) float32 { return powerOfTwoHalved(block[0]) }

func oneNVFP4(block []byte) { copy(block, []byte{0x40, 0x40, 0x40, 0x40}) }

func runNVFP4(block []byte, i int) float32 { return ue4m3Halved(block[i]) }

func runIQ1_M(block []byte, _ int) float32 { return F16ToF32(scaleIQ1_M(block)) }
