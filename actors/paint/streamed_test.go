package paint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/place"
)

// tight is a room in which all matrices go through as few slots as can be.
func tight(t *testing.T, d backend.Device) Room {
	t.Helper()
	s, err := supply.Open(zerolog.Nop(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return Room{Device: d, Supply: s, plans: func(all []*ir.Bound) (plans []place.Model) {
		for _, p := range all {
			plans = append(plans, through(p))
		}
		return plans
	}}
}

// through is the plan in which all matrices of a program share two slots, if there are more of them.
func through(p *ir.Bound) (m place.Model) {
	var shared []int
	for g, group := range p.On(p.All()) {
		home := place.Home{Group: group, Tier: place.Device, Slot: len(m.Layout.Slots)}
		if group.Use == ir.Matrix {
			home.Tier, home.Slot = place.Disk, -1
			shared = append(shared, g)
		} else {
			m.Layout.Slots = append(m.Layout.Slots, []int{g})
		}
		m.Homes = append(m.Homes, home)
	}
	if len(shared) < 2 {
		for _, g := range shared {
			m.Homes[g].Tier, m.Homes[g].Slot = place.Device, len(m.Layout.Slots)
			m.Layout.Slots = append(m.Layout.Slots, []int{g})
		}
		return m
	}
	for range min(2, len(shared)-1) {
		m.Ring.Slots = append(m.Ring.Slots, len(m.Layout.Slots))
		m.Layout.Slots = append(m.Layout.Slots, shared)
	}
	m.Ring.Groups = shared
	return m
}

// moved is how many bytes came to slots that weights share.
func moved(s *supply.Supply) uint64 { return s.Moved().AheadBytes + s.Moved().StepBytes }

// Law Whole: what a transformer says has the same bits whether its weights lie in memory or come while it computes.
func TestStreamed(t *testing.T) {
	testref.Dir(t) // without it nothing is begun
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, d := range devices(t)[1:] {
		t.Run("zimage "+d.Name(), func(t *testing.T) {
			whole, r := zimage(t, d), tight(t, d)
			streams := zimageIn(t, r)
			for i := range 2 {
				x := converttest.Tensors(t, "multimodal", "zimage", []string{"transformer_0.safetensors", "transformer_1.safetensors"}[i])
				grid, rows := latents(x["latents"])
				at := float64(x["t"].Floats()[0])
				want, err := whole.Evaluate(grid, rows, refined(t, whole, x["cap"].Floats()), at)
				require.NoError(t, err)
				for range 3 {
					got, err := streams.Evaluate(grid, rows, refined(t, streams, x["cap"].Floats()), at)
					require.NoError(t, err)
					require.Equal(t, want, got)
				}
			}
			require.Positive(t, moved(r.Supply))
		})
		for _, folder := range []string{"flux", "flux_guidance"} {
			t.Run(folder+" "+d.Name(), func(t *testing.T) {
				whole, r := flux(t, d, folder), tight(t, d)
				streams := fluxIn(t, r, folder)
				x := converttest.Tensors(t, "multimodal", folder, "transformer.safetensors")
				text := fluxText(t)
				if whole.Guided {
					text = &Text{Rows: x["prompt_embeds"].Floats(), Pooled: x["pooled"].Floats()}
				}
				grid, rows := latents(x["latents"])
				for _, level := range []float64{0.5, 0.25, 0.5} {
					want, err := whole.Evaluate(grid, rows, text, level, 3.5)
					require.NoError(t, err)
					got, err := streams.Evaluate(grid, rows, text, level, 3.5)
					require.NoError(t, err)
					require.Equal(t, want, got)
				}
				require.Positive(t, moved(r.Supply))
			})
		}
	}
}

// Law Whole, of encoders of texts: what they make of a text has the same bits.
func TestStreamedTexts(t *testing.T) {
	read := func(folder string) pixels.TextSettings {
		text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "flux", folder, "config.json"))
		require.NoError(t, err)
		_, s, err := pixels.ReadTextSettings(text)
		require.NoError(t, err)
		return s
	}
	d := devices(t)[1]
	r := tight(t, d)
	ids := converttest.Tensors(t, "multimodal", "flux", "t5.safetensors")["ids"].IDs()
	want, err := T5(Room{Device: d}, published(t, "flux", "text_encoder_2"), read("text_encoder_2"), ids)
	require.NoError(t, err)
	got, err := T5(r, published(t, "flux", "text_encoder_2"), read("text_encoder_2"), ids)
	require.NoError(t, err)
	require.Equal(t, want, got)
	before := moved(r.Supply)
	require.Positive(t, before)

	f := reader(t)
	ids = converttest.Tensors(t, "multimodal", "zimage", "text.safetensors")["0.ids"].IDs()
	want, err = Encode(Room{Device: d}, f, ids)
	require.NoError(t, err)
	got, err = Encode(r, f, ids)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Greater(t, moved(r.Supply), before)
}
