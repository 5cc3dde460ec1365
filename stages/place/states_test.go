package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestStatesTooLarge says what takes the memory: no shorter context would help.
func TestStatesTooLarge(t *testing.T) {
	p := program()
	p.Classes = append(p.Classes, ir.Class{State: true})
	p.States = []ir.StateLayer{{Values: 8 * mib, Class: 1}}
	_, err := Make([]Ask{{Program: p}}, Machine{Memory: []int64{128 * mib}})
	require.EqualError(t, err, "the recurrent states of a sequence and a step need 224 MiB, 128 MiB are available: fewer rows "+
		"a step (64 now) need less")
}

// TestStates: states come on top of keys and values, whose context they leave as it is; where they are large, steps
// have fewer rows, and then fewer sequences are kept.
func TestStates(t *testing.T) {
	for _, test := range []struct {
		name         string
		values       int
		memory       int64
		rows, blocks int
	}{
		{"small ones", 1 << 10, 1024 * mib, 512, 33},
		{"those of steps take too much", 1 << 20, 400 * mib, 256, 25},
		{"those of sequences, too", 1 << 20, 260 * mib, 256, 13},
		{"hardly any memory", 1 << 20, 64 * mib, 64, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := program()
			p.Classes = append(p.Classes, ir.Class{State: true})
			p.States = []ir.StateLayer{{Values: test.values, Class: 1}}
			with, err := Make([]Ask{{Program: p}}, Machine{Memory: []int64{test.memory}})
			require.NoError(t, err)
			without, err := Make([]Ask{ask(nil)}, Machine{Memory: []int64{test.memory}})
			require.NoError(t, err)
			m, layout := &with.Models[0], with.Models[0].Layout
			require.Equal(t, test.rows, m.Rows)
			require.Equal(t, test.blocks, layout.Blocks[1])
			require.GreaterOrEqual(t, test.blocks, backend.WindowBlocks(backend.BlockSize+1, 2*m.Rows))
			require.Equal(t, without.Models[0].Context, m.Context)
			require.Equal(t, without.Models[0].Host().KV+int64(4*test.values*test.blocks), m.Host().KV)
		})
	}
}
