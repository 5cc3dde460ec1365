package synth

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Filler writes random tensors, the same ones for the same seed. Making random blocks is slower than disks are, so it
// makes some of each kind and deals them out in short runs from random places: all rows differ.
type Filler struct {
	Seed  uint64
	pools map[kind][]byte
}

// kind is what blocks have in common.
type kind struct {
	t   quant.Type
	dev float64
}

const (
	poolValues = 1 << 19 // of a kind: 0.3 MB of Q4_K
	runBytes   = 512     // as much as makes copying cheap
	burst      = 1 << 20 // bytes of a write
)

// Write writes all of t's data in type typ.
func (f *Filler) Write(w io.Writer, t *Tensor, typ quant.Type) error {
	name := fnv.New64a()
	_, _ = io.WriteString(name, t.Name) // cannot fail
	random := rand.New(rand.NewPCG(f.Seed, name.Sum64()))
	rows, cols := 1, t.Shape[0]
	for _, n := range t.Shape[1:] {
		rows *= n
	}
	if t.Below > 0 {
		return writeWhole(w, t, rows, random)
	}
	if t.Vector || t.Mean != 0 || t.Values != nil || t.Diagonal {
		return writeRows(w, t, typ, rows, random)
	}
	pool, err := f.pool(kind{typ, t.Dev})
	if err != nil {
		return err
	}
	row, err := typ.RowBytes(cols)
	if err != nil {
		return err
	}
	return deal(w, pool, int64(row)*int64(rows), row/typ.Bytes(), typ.Bytes(), random)
}

// writeRows writes values one by one.
func writeRows(w io.Writer, t *Tensor, typ quant.Type, rows int, random *rand.Rand) error {
	values := make([]float32, t.Shape[0])
	size, err := typ.RowBytes(len(values))
	if err != nil {
		return err
	}
	data := make([]byte, size)
	for r := range rows {
		for i := range values {
			values[i] = float32(t.Mean + t.Dev*random.NormFloat64())
		}
		if copy(values, t.Values); t.Diagonal {
			if clear(values); r < len(values) {
				values[r] = 1
			}
		}
		if err := quant.Quantize(typ, data, values); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole writes rows of whole numbers, none of which a row has twice.
func writeWhole(w io.Writer, t *Tensor, rows int, random *rand.Rand) error {
	data := make([]byte, 0, 4*t.Shape[0])
	for range rows {
		first := random.IntN(t.Below)
		data = data[:0]
		for i := range t.Shape[0] {
			data = binary.LittleEndian.AppendUint32(data, uint32((first+i)%t.Below))
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// pool returns blocks of a kind, made when first asked for.
func (f *Filler) pool(k kind) ([]byte, error) {
	if pool, ok := f.pools[k]; ok {
		return pool, nil
	}
	if k.t.Block() == 0 {
		return nil, fmt.Errorf("%s is not a type that sluice knows", k.t)
	}
	pool := make([]byte, poolValues/k.t.Block()*k.t.Bytes())
	random := rand.New(rand.NewPCG(f.Seed+uint64(k.t), math.Float64bits(k.dev)))
	if err := quant.Random(k.t, pool, k.dev, random); err != nil {
		return nil, err
	}
	if f.pools == nil {
		f.pools = map[kind][]byte{}
	}
	f.pools[k] = pool
	return pool, nil
}

// deal writes size bytes of whole blocks in runs from random places of the pool. A run is at most a quarter of a row,
// so that a row is a choice of four places or more: enough for no two to be the same.
func deal(w io.Writer, pool []byte, size int64, rowBlocks, block int, random *rand.Rand) error {
	run := max(1, min(rowBlocks/4, runBytes/block))
	places := uint64(len(pool)/block - run + 1)
	buf := make([]byte, 0, min(size, burst)+int64(run*block))
	for size > 0 {
		buf = buf[:0]
		for most := int(min(size, burst)); len(buf) < most; {
			at := int(random.Uint64N(places)) * block
			buf = append(buf, pool[at:at+run*block]...)
		}
		n := min(int64(len(buf)), size)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}
