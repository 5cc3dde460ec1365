//go:build cgo && linux

package vulkan

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// scarce has one call of a device fail for want of memory: the one after so many. Some calls take no memory.
type scarce struct {
	mu     sync.Mutex
	left   int    // calls until then; below 0: none fails
	failed string // the call that did
	only   string // the calls that count; empty: all
}

func (s *scarce) fails(call string) vk.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.only != "" && s.only != call {
		return vk.Success
	}
	if s.left--; s.left != 0 {
		return vk.Success
	}
	s.failed = call
	return vk.OutOfMemory
}

// arm has the n-th call from now on fail, from 1.
func (s *scarce) arm(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.failed = n, ""
}

// struck is the call that failed since arm; empty: none did.
func (s *scarce) struck() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// small is a model whose weights are few, and floats: for tests of what runs when, whatever it computes.
func small(t *testing.T) *backendtest.Model {
	return archtest.Open(t, "../../actors/testdata/qwen3.gguf", nil)
}

// streamed is a config of which all groups of matrices that can do so share two slots, and wait in the host's memory.
func streamed(m *backendtest.Model) backend.Config {
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3),
		MaxRows: 4, MaxWanted: 4, Flight: 2}, Weights: backend.Uploaded{Tables: m.Weights}}
	var ring []int
	for g, of := range m.On(m.All()) {
		if of.Use == ir.Matrix {
			ring = append(ring, g)
		} else {
			c.Slots = append(c.Slots, []int{g})
		}
	}
	c.Slots, c.Kept = append(c.Slots, ring, ring), ring
	return c
}

// through computes two steps of a sequence, and returns their logits: one after the other, each segment with the groups
// that it needs placed before.
func through(x backend.Model, m *backendtest.Model, c *backend.Config) (all []float32, err error) {
	groups, slot := m.On(m.All()), 0
	for pos, tokens := range [][]int32{{1}, {2}} {
		s := x.Steps()[pos%len(x.Steps())]
		s.Tokens, s.Wanted, s.Draws = tokens, []int32{0}, nil
		s.Spans = []backend.Span{{Rows: 1, Pos: pos, Tables: backendtest.Tables(m.Program, []int32{2, 0, 1})}}
		for i := range m.Segments {
			if err = enqueue(x, c, groups, i, s, &slot); err != nil {
				break
			}
		}
		done := make(chan error, 1)
		x.Finish(s, func(e error) { done <- e })
		if ended := <-done; err == nil {
			err = ended
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s.Logits[:m.OutputWidth()]...)
	}
	return all, nil
}

// enqueue runs a segment with what the segment needs in one of two slots. It waits until the groups are free again.
func enqueue(x backend.Model, c *backend.Config, groups []ir.Group, segment int, s *backend.Step, slot *int) error {
	for g := range groups {
		if c.Slots == nil || groups[g].Use != ir.Matrix || groups[g].Segment != segment {
			continue
		}
		*slot++
		if err := x.Place(g, len(c.Slots)-1-*slot%2, nil); err != nil {
			return err
		}
		free := make(chan bool)
		err := x.Run(backend.Work{Segment: segment, Groups: []int{g}, Last: true, Done: func() { close(free) }}, s)
		<-free
		return err
	}
	return backend.Enqueue(x, segment, s)
}

// first picks the first device.
func first(all []*vk.Physical) (*vk.Physical, error) {
	if len(all) == 0 {
		return nil, errors.New("there is no device")
	}
	return all[0], nil
}

// TestScarce has each call fail that takes memory, one after another, from the opening of the card to the end of a
// step. It is an error that says so, or it works all the same; nothing is left behind, and what is tried again works
// and has the bits that it always has.
func TestScarce(t *testing.T) {
	s, stride := &scarce{}, 1
	if testing.Short() {
		stride = 5 // calls of about as many kinds are made, each in many places
	}
	o := Options{Trial: &vk.Trial{Fails: s.fails, Apart: true}}
	for n := 1; ; n++ {
		s.arm(n)
		d, err := openDevice(first, &o)
		if err == nil { // as a backend, which takes memory, too
			var v *exec.Device
			v, err = exec.New(func() (driver.Device, error) { return &borrowed{device: d.(*device)}, nil })
			if err == nil {
				require.NoError(t, v.Close())
			}
			if s.struck() != "" {
				require.NoError(t, d.Close(false))
			}
		}
		if s.struck() == "" {
			require.NoError(t, err)
			require.Greater(t, n, 5)
			t.Cleanup(func() { require.NoError(t, d.Close(false)) })
			d := d.(*device)
			m := small(t)
			whole := backend.Config{Limits: backend.Limits{KV: backend.KVF16,
				Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 4, MaxWanted: 4, Flight: 2}}
			t.Run("whole", func(t *testing.T) { eachFails(t, s, d, m, whole, stride) })
			t.Run("streamed", func(t *testing.T) { eachFails(t, s, d, m, streamed(m), stride) })
			t.Run("kernels", func(t *testing.T) { kernelsFail(t, s, d, m, whole) })
			return
		}
		if err == nil {
			continue // what was not to be had is done without
		}
		requireScarce(t, s, err)
	}
}

func requireScarce(t *testing.T, s *scarce, err error) {
	t.Helper()
	require.ErrorIs(t, err, vk.OutOfMemory, s.struck())
	if s.struck() == "vkAllocateMemory" {
		require.ErrorContains(t, err, "MiB")
		require.Regexp(t, `free for it|does not say`, err.Error())
		require.Contains(t, err.Error(), "--")
	}
}

// eachFails loads a model and computes, over and over, and each time the next call fails.
func eachFails(t *testing.T, s *scarce, d *device, m *backendtest.Model, c backend.Config, stride int) {
	seen := map[string]int{}
	var want []float32
	for n := 0; ; n += stride {
		s.arm(0) // none
		v, err := exec.New(func() (driver.Device, error) { return &borrowed{device: d}, nil })
		require.NoError(t, err)
		s.arm(n)
		x, err := v.Compile(m.Bound, c)
		if err != nil {
			requireScarce(t, s, err)
			seen[s.struck()]++
			require.NoError(t, v.Close())
			continue
		}
		got, err := compute(x, m, &c)
		if err != nil {
			requireScarce(t, s, err)
			got, err = compute(x, m, &c) // there is memory again
		}
		require.NoError(t, err, s.struck())
		require.NoError(t, x.Close())
		require.NoError(t, v.Close())
		if n == 0 {
			want = got
		}
		require.Equal(t, want, got, "after %s failed, call %d", s.struck(), n)
		if n > 0 && s.struck() == "" {
			break
		}
		seen[s.struck()]++
	}
	t.Log(fmt.Sprint(seen))
	for _, call := range []string{"vkAllocateMemory", "vkCreateBuffer", "vkBindBufferMemory", "vkMapMemory",
		"vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit"} {
		require.Positive(t, seen[call], call)
	}
}

// kernelsFail has a kernel fail to be compiled, each of the first ones. Who compiles it ahead tells nobody: then
// the step compiles it, and has no error.
func kernelsFail(t *testing.T, s *scarce, d *device, m *backendtest.Model, c backend.Config) {
	s.only = "vkCreateComputePipelines"
	defer func() { s.only = "" }()
	v, err := exec.New(func() (driver.Device, error) { return &borrowed{device: d}, nil })
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	var want []float32
	for n := 0; n <= 6; n++ {
		d.kernels.Close()
		x, err := v.Compile(m.Bound, c)
		require.NoError(t, err)
		s.arm(n) // 0: none
		got, err := compute(x, m, &c)
		if n == 0 {
			want = got
		} else if err != nil {
			requireScarce(t, s, err)
			got, err = compute(x, m, &c)
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, x.Close())
		require.Equal(t, n > 0, s.struck() != "")
	}
}

// compute uploads all weights, and computes.
func compute(x backend.Model, m *backendtest.Model, c *backend.Config) ([]float32, error) {
	for r := range m.Weights {
		if err := x.Upload(ir.Ref(r), 0, m.Weights[r]); err != nil {
			return nil, err
		}
	}
	return through(x, m, c)
}
