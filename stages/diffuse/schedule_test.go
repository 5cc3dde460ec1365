package diffuse

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// published is a schedule of the reference data.
type published struct {
	Label, How string
	Steps      int
	Config     struct {
		Shift   float64
		Dynamic bool   `json:"use_dynamic_shifting"`
		Type    string `json:"time_shift_type"`
	}
	Args              struct{ Mu float64 }
	Sigmas, Timesteps []float64
}

// TestSchedules: levels are those of diffusers, to a rounding of float32.
func TestSchedules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "scheduler", "schedules.json"))
	require.NoError(t, err)
	var all []published
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all, 85)
	for _, c := range all {
		t.Run(fmt.Sprint(c.Label, c.How, c.Config.Type, c.Steps, c.Args.Mu), func(t *testing.T) {
			f := Flow{Shift: c.Config.Shift, Ending: map[string]Ending{"pipeline": Even, "plain": Trained, "sigma_min_0": Zero}[c.How]}
			if c.Config.Dynamic {
				f.Shifting = map[string]Shifting{"exponential": Exponential, "linear": Linear}[c.Config.Type]
			}
			got, err := f.Levels(c.Steps, c.Args.Mu)
			require.NoError(t, err)
			require.InDeltaSlice(t, c.Sigmas, got, 2e-7)
			for i, at := range c.Timesteps {
				require.InDelta(t, at, 1000*got[i], 2e-4)
			}
		})
	}
	for n, mu := range map[int]float64{24: 0.46072916666666663, 256: 0.5, 1024: 0.63, 4096: 1.15} {
		require.InDelta(t, mu, Tokens(n), 1e-12)
	}
}

// TestEuler: a picture goes from level to level as diffusers takes it.
func TestEuler(t *testing.T) {
	r := converttest.Tensors(t, "multimodal", "scheduler", "euler.safetensors")
	levels, err := Flow{Shift: 3}.Levels(4, 0)
	require.NoError(t, err)
	x := r["sample_0"].Floats()
	for i := range 4 {
		Step(x, r[fmt.Sprintf("model_output_%d", i)].Floats(), levels[i], levels[i+1])
		require.InDeltaSlice(t, r[fmt.Sprintf("sample_%d", i+1)].Floats(), x, 2e-6)
	}
	n := converttest.Tensors(t, "multimodal", "scheduler", "scale_noise.safetensors")
	level := float64(n["timestep"].Floats()[0]) / 1000
	require.InDeltaSlice(t, n["noised"].Floats(), Noised(n["sample"].Floats(), n["noise"].Floats(), level), 1e-6)
}

// TestLevelsFall: levels fall from 1 to 0, whatever the shift.
func TestLevelsFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Flow{Shifting: Shifting(rapid.IntRange(0, 2).Draw(t, "shifting")), Shift: rapid.Float64Range(0.1, 20).Draw(t, "shift"),
			Ending: Ending(rapid.IntRange(0, 2).Draw(t, "ending"))}
		levels, err := f.Levels(rapid.IntRange(1, 60).Draw(t, "steps"), rapid.Float64Range(0.1, 4).Draw(t, "mu"))
		require.NoError(t, err)
		require.InDelta(t, 1, levels[0], 1e-12)
		require.Zero(t, levels[len(levels)-1])
		for i, x := range levels[1:] {
			require.LessOrEqual(t, x, levels[i])
		}
	})
}

func TestLevelsRefuse(t *testing.T) {
	for _, c := range []struct {
		f    Flow
		n    int
		mu   float64
		want string
	}{
		{Flow{Shift: 1}, 0, 0, "0 steps, want 1 to 1000"}, {Flow{Shift: 1}, 1001, 0, "1001 steps"},
		{Flow{}, 4, 0, "a shift of 0, want more than 0"}, {Flow{Shift: math.NaN()}, 4, 0, "a shift of NaN"},
		{Flow{Shifting: Exponential}, 4, math.Inf(1), "a shift of +Inf by patches"},
		{Flow{Shifting: Linear}, 4, -1, "a shift of -1 by patches"},
	} {
		_, err := c.f.Levels(c.n, c.mu)
		require.ErrorContains(t, err, c.want)
	}
}

func TestReadFlow(t *testing.T) {
	for text, want := range map[string]Flow{
		`"shift": 3.0, "use_dynamic_shifting": false, "time_shift_type": "exponential"`: {Shift: 3},
		`"shift": 3.0, "use_dynamic_shifting": true, "time_shift_type": "exponential"`:  {Shifting: Exponential, Shift: 3},
		`"shift": 1.0, "use_dynamic_shifting": true, "time_shift_type": "linear"`:       {Shifting: Linear, Shift: 1},
	} {
		f, err := ReadFlow([]byte(`{"_class_name": "FlowMatchEulerDiscreteScheduler", ` + text + `}`))
		require.NoError(t, err)
		require.Equal(t, want, f)
	}
	_, err := ReadFlow([]byte(`{"_class_name": "DDIMScheduler"}`))
	require.ErrorContains(t, err, `_class_name is "DDIMScheduler", want FlowMatchEulerDiscreteScheduler`)
	_, err = ReadFlow([]byte(`{`))
	require.Error(t, err)
}

func FuzzReadFlow(f *testing.F) {
	f.Add([]byte(`{"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if flow, err := ReadFlow(text); err == nil {
			_, _ = flow.Levels(4, 1)
		}
	})
}
