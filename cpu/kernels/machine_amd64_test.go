//go:build !purego

package kernels

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
)

// processorHas says which sets the processor has the instructions for, slowest first, and which not: asked by other
// code than that of Sets, so that one that forgets a set is found.
func processorHas() (here, missing []string) {
	x := &cpu.X86
	has := x.HasAVX2 && x.HasFMA
	for _, set := range []struct {
		name string
		more bool
	}{
		{"avx2", true},
		{"avx512", x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL},
		{"avx512vnni", x.HasAVX512VNNI},
		{"amx", x.HasAMXTile && x.HasAMXInt8},
	} {
		if has = has && set.more; has {
			here = append(here, set.name)
		} else {
			missing = append(missing, set.name)
		}
	}
	return here, missing
}

// TestSetsBuildOnTheOneBelow: without VNNI, AVX-512 is for floats; with VNNI, for blocks besides.
func TestSetsBuildOnTheOneBelow(t *testing.T) {
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	avx2, avx512, vnni, amx := newAVX2(), newAVX512(), newVNNI(), newAMX()
	for _, typ := range types {
		float := FormOf(typ) == Plain
		for _, c := range []struct {
			a, b  *Set
			alike bool
		}{{avx2, avx512, !float}, {avx512, vnni, float}, {vnni, amx, true}} {
			what := fmt.Sprintf("%s of %s and %s", typ, c.a.Name, c.b.Name)
			require.Equal(t, c.alike, same(c.a.one[typ], c.b.one[typ]), what)
			require.Equal(t, c.alike, same(c.a.four[typ], c.b.four[typ]), what)
			last := len(c.b.panels[typ]) - 1
			require.Len(t, c.a.panels[typ], 1, what)
			require.Equal(t, c.alike, same(c.a.panels[typ][0].multiply, c.b.panels[typ][last].multiply), what)
		}
	}
	require.Equal(t, avx2.Name, avx512.Blocks())
	for _, own := range []*Set{generic(), avx2, vnni, amx} {
		require.Equal(t, own.Name, own.Blocks())
	}
	require.True(t, amx.Tiled() && amx.panels[quant.Q4_K][0].tiles && !vnni.Tiled())
	require.Len(t, amx.panels[quant.F32], 1)
}

// TestTwinOnArm64 runs what arm64's sets are compared by on emulated processors: one without SDOT, one with, and one
// that has SVE and SMMLA as well, which no set uses.
func TestTwinOnArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("an emulated processor takes its time")
	}
	run := testref.Arm64(t)
	for processor, ran := range map[string]string{"cortex-a72": "[neon]", "neoverse-n1": "[neon dotprod]", "max": "[neon dotprod]"} {
		require.Contains(t, run(processor, "^Test(TwinBriefly|TwinRanWhatTheMachineHas)$"), "RAN "+ran, processor)
	}
}
