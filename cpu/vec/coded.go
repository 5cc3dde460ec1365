package vec

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/kvcode"
)

// putNumber writes the float scale beside integers (the value of 1), and the integer that Offset adds to a sum.
func putNumber(to []byte, unit float32, bias int) {
	binary.LittleEndian.PutUint32(to, math.Float32bits(unit))
	binary.LittleEndian.PutUint32(to[4:], uint32(int32(bias)))
}

func numberAt(from []byte) (unit float32, bias int) {
	return float32At(from), int(int32(binary.LittleEndian.Uint32(from[4:])))
}

func float32At(from []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(from)) }

// QueryBytes is the size of a query that Query prepared: a byte for each feature, in whole parts, then a unit and a
// bias for every scale.
func (k *CodedKeys) QueryBytes() int { return codesPart*k.parts() + numberSize*k.scales() }

// Query rounds a rotated query to bytes, with a unit for all features that share a scale of K, which must be finite.
func (k *CodedKeys) Query(isa ISA, to []byte, row []float32) {
	whole := codesPart * k.parts()
	kept := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(to))), whole)
	clear(kept[k.Features:])
	each := codesPart
	if k.Levels != nil {
		each = k.Features
	}
	for i := range k.scales() {
		part := kept[i*each : min((i+1)*each, k.Features)]
		unit, sum := isa.Bytes(part, row[i*each:][:len(part)], codesTiny), 0
		for _, x := range part {
			sum += int(x)
		}
		putNumber(to[whole+numberSize*i:], unit, sum*k.Offset)
	}
}

// keyProduct is a product as the assembly takes it; the assembly counts down groups and passes in it.
type keyProduct struct {
	query    *byte    // the first row's
	scores   *float32 // the first row's
	codes    *byte
	scales   *byte
	next     *byte // what is prefetched
	stride   int   // from query to query
	numbers  int   // of a query, behind its bytes
	features int   // in steps of 8
	chunk    int   // bytes from the codes of 16 positions to those of the next 16
	scale    int   // bytes from their scales to the next ones
	groups   int   // at least 1
	passes   int   // left, each of a register of positions
	at       *byte // codes of a pass
	scaleAt  *byte
	table    [16]byte
}

// Multiply computes the scores of prepared queries with the block's 64 positions, [rows][64]: for every scale of a
// position, the sum s of products, as float32, then fma(s·scale, unit, score), from 0 on. next, if not empty, is what
// will be read after the block.
func (k *CodedKeys) Multiply(isa ISA, scores []float32, queries []byte, rows int, block, next []byte) {
	stride := k.QueryBytes()
	if len(scores) < rows*Block || len(queries) < rows*stride || len(block) < k.Bytes() || k.Features > CodesMost {
		panic("vec: a matrix is smaller than the product's shape")
	}
	if isa == Generic {
		k.twin(scores, queries, rows, block)
		return
	}
	chunk := k.chunk()
	p := keyProduct{
		codes: at(block), scales: &block[Block/Lanes*chunk], next: at(block), stride: stride,
		numbers: codesPart * k.parts(), features: (k.Features + 7) &^ 7, chunk: chunk, scale: 2 * Lanes * k.scales(),
		table: k.table(),
	}
	for i := range p.table {
		if isa == NEON && k.Levels != nil { // multiplies signed bytes
			p.table[i] -= byte(k.Offset)
		}
	}
	p.passes, p.at, p.scaleAt = Block/Lanes, p.codes, p.scales // the assembly sets them anew for each group
	if len(next) > 0 {
		p.next = at(next)
	}
	for row, many := 0, 4; row < rows; many /= 2 {
		if p.groups = (rows - row) / many; p.groups > 0 {
			p.query, p.scores = &queries[row*stride], &scores[row*Block]
			row += p.groups * many
			if isa == AVX512 {
				runKeysAVX512(&p, k.Bits, many, k.Levels != nil)
			} else {
				runKeysWhole(&p, k.Bits, many, k.Levels != nil)
			}
			p.next = at(block)
		}
	}
}

// twin is Multiply in plain Go. If all features have one scale, scores holds integer sums until these are complete.
func (k *CodedKeys) twin(scores []float32, queries []byte, rows int, block []byte) {
	table, stride, numbers := k.table(), k.QueryBytes(), codesPart*k.parts()
	clear(scores[:rows*Block])
	for position := range Block {
		from := block[position/Lanes*k.chunk():]
		for part := range k.parts() {
			var levels [codesPart]int
			many := min(codesPart, k.Features-part*codesPart)
			for i := range many {
				levels[i] = int(k.get(from[part*k.Bits*codesWord:], position%Lanes*4+i%codesStep, i/codesStep))
				if k.Levels != nil {
					levels[i] = int(table[levels[i]])
				}
			}
			for r := range rows {
				sum, query := 0, queries[r*stride:][:stride]
				for i, x := range query[part*codesPart:][:many] {
					sum += levels[i] * int(int8(x))
				}
				score := &scores[r*Block+position]
				if k.Levels != nil {
					*score += float32(sum)
					continue
				}
				unit, bias := numberAt(query[numbers+numberSize*part:])
				*score = FMA(float32(float32(sum-bias)*k.half(block, position, part)), unit, *score)
			}
		}
		for r := 0; r < rows && k.Levels != nil; r++ {
			unit, bias := numberAt(queries[r*stride+numbers:])
			score := &scores[r*Block+position]
			*score = float32(float32(float32(int(*score)-bias)*k.half(block, position, 0)) * unit)
		}
	}
}

func (k *CodedKeys) half(block []byte, position, scale int) float32 {
	return halfAt(block[k.scaleAt(position, scale):])
}

func halfAt(b []byte) float32 {
	var wide [1]float32
	widenTwin(wide[:], []uint16{binary.LittleEndian.Uint16(b)})
	return wide[0]
}

// weightBytes is the size of what Weigh prepares for one scale: 64 words, and a unit and bias, in whole ymm registers.
const weightBytes = 2*Block + 32

// WeightBytes is the size of the weights of a row that Weigh prepares.
func (v *CodedValues) WeightBytes() int { return weightBytes * v.scales() }

// Weigh rounds weights of the block's positions, [rows][64], none above 1, to 16-bit words:
// round(weight·(scale·factor)), ties to even, for every scale of a row of V. factor is 32767 divided by the block's
// largest such scale.
func (v *CodedValues) Weigh(isa ISA, to []byte, weights []float32, block []byte) {
	stride, rows := v.WeightBytes(), len(weights)/Block
	if len(to) < rows*stride || len(block) < v.Bytes() {
		panic("vec: a matrix is smaller than the product's shape")
	}
	for i := range v.scales() {
		factor, unit := float32At(block[v.numberAt(i):]), float32At(block[v.numberAt(i)+4:])
		scales := (*[Block]uint16)(unsafe.Pointer(&block[v.scaleAt(0, i)]))
		switch {
		case rows == 0:
		case isa == AVX512:
			weighAVX512(&to[i*weightBytes], at(weights), scales, rows, stride, v.Offset, factor, unit)
		case isa == AVX2:
			weighWhole(&to[i*weightBytes], at(weights), scales, rows, stride, v.Offset, factor, unit)
		default:
			for r := range rows {
				weighTwin(to[r*stride+i*weightBytes:], weights[r*Block:][:Block], scales, v.Offset, factor, unit)
			}
		}
	}
}

// weighTwin is CodedValues.Weigh in plain Go, for one row and scale.
func weighTwin(to []byte, weights []float32, scales *[Block]uint16, offset int, factor, unit float32) {
	var scaled [Block]float32
	widenTwin(scaled[:], scales[:])
	sum := 0
	for i, x := range scaled {
		x = float32(weights[i] * float32(x*factor))
		n := 0
		if x == x {
			n = int(math.RoundToEven(float64(x)))
		}
		binary.LittleEndian.PutUint16(to[2*i:], uint16(int16(n)))
		sum += n
	}
	putNumber(to[2*Block:], unit, sum*offset)
}

// valueProduct is a product as the assembly takes it.
type valueProduct struct {
	weights *byte    // the first row's
	sums    *float32 // the first row's
	codes   *byte
	next    *byte // what is prefetched
	stride  int   // from weights to weights
	row     int   // bytes from sums to sums
	passes  int   // each of a register of features
	groups  int   // at least 1
	left    int   // of the passes
	table   [16]byte
}

// Multiply adds to sums, [rows][stride], V weighted by prepared weights: integer sums, as float32, times the weights'
// unit. Of each row the first Features are written, rounded up to whole lanes.
func (v *CodedValues) Multiply(isa ISA, sums []float32, stride int, weights []byte, rows int, block, next []byte) {
	each, lanes := v.WeightBytes(), v.chunks()*Lanes
	if stride < lanes || len(sums) < (rows-1)*stride+lanes || len(weights) < rows*each || len(block) < v.Bytes() {
		panic("vec: a matrix is smaller than the product's shape")
	}
	if isa == Generic {
		v.twin(sums, stride, weights, rows, block)
		return
	}
	p := valueProduct{stride: each, row: 4 * stride, table: v.table()}
	chunks := v.chunks() // of features that share a scale
	if v.Levels == nil {
		chunks = codesPart / Lanes
	}
	for i := range v.scales() {
		first, from := i*chunks, i*chunks*v.chunk()
		many := min(chunks, v.chunks()-first)
		p.codes, p.next = &block[from], &block[from]
		if len(next) > from {
			p.next = &next[from]
		}
		for row, group := 0, 4; row < rows; group /= 2 {
			if p.groups = (rows - row) / group; p.groups > 0 {
				p.weights, p.sums = &weights[row*each+i*weightBytes], &sums[row*stride+first*Lanes]
				row += p.groups * group
				if p.passes = many * isa.passes(); isa == AVX512 {
					runValuesAVX512(&p, v.Bits, group, v.Levels != nil)
				} else {
					runValuesWhole(&p, v.Bits, group, v.Levels != nil)
				}
				p.next, p.left = p.codes, 0
			}
		}
	}
}

// passes is how many registers have 16 lanes.
func (isa ISA) passes() int {
	switch isa {
	case NEON:
		return 4
	case AVX2:
		return 2
	}
	return 1
}

// twin is Multiply in plain Go.
func (v *CodedValues) twin(sums []float32, stride int, weights []byte, rows int, block []byte) {
	table, each := v.table(), v.WeightBytes()
	for feature := range v.chunks() * Lanes {
		var levels [Block]int
		for position := range levels {
			part := feature/Lanes*v.chunk() + position/codesPart*v.Bits*codesWord
			in := position % codesPart
			levels[position] = int(v.get(block[part:], feature%Lanes*4+byteOf[in%codesStep], in/codesStep))
			if v.Levels != nil {
				levels[position] = int(table[levels[position]])
			}
		}
		scale := 0
		if v.Levels == nil {
			scale = feature / codesPart
		}
		for r := range rows {
			sum, row := 0, weights[r*each+scale*weightBytes:]
			for i, level := range levels {
				sum += level * int(int16(binary.LittleEndian.Uint16(row[2*i:])))
			}
			unit, bias := numberAt(row[2*Block:])
			sums[r*stride+feature] = float32(sum-bias) * unit
		}
	}
}

// Butterflies multiplies a row, whose size is a power of two, by Sylvester's Hadamard matrix: sums and differences of
// neighbours, then of pairs, and so on.
func (isa ISA) Butterflies(x []float32) {
	if isa != AVX2 && isa != AVX512 || len(x) < Lanes {
		kvcode.Butterflies(x)
		return
	}
	butterfliesWhole(at(x), len(x))
}
