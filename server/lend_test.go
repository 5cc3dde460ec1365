package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestLent: a member that lends computes for others, by whom its listener lets in; one that does not says so. Clients
// and members of other clusters are refused.
func TestLent(t *testing.T) {
	w := newTown(t)
	lender := &remote.Lender{Build: "1", Device: ref.New(), Lends: 1 << 30}
	attic, desk := w.join(t, "attic", Options{Lender: lender}), w.join(t, "desk", Options{})
	t.Cleanup(lender.Close)
	own := w.pass(t, "cellar")
	open := func(at string) (*remote.Device, error) {
		return remote.Open(remote.Options{Addr: at, Build: "1", Dial: remote.Dial(own, at)})
	}
	_, err := open(desk.at)
	require.EqualError(t, err, desk.at+": desk answers 403: this member computes for nobody: start it with --lend SIZE")
	d, err := open(attic.at)
	require.NoError(t, err)
	require.Equal(t, "member attic ("+ref.New().Name()+")", d.Name())
	m, err := judge.Product(quant.F32, 16, 16)
	require.NoError(t, err)
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF32,
		Blocks: backendtest.Blocks(m.Program, 1), MaxRows: 1, MaxWanted: 1}})
	require.NoError(t, err)
	require.NoError(t, x.Upload(0, 0, m.Weights[0]))
	require.NoError(t, x.Close())
	rates, err := d.Rates()
	require.NoError(t, err)
	require.Positive(t, rates.Turn)
	require.Positive(t, rates.Bus)
	stranger := newTown(t).pass(t, "cellar")
	_, err = remote.Open(remote.Options{Addr: attic.at, Build: "1", Dial: remote.Dial(stranger, attic.at)})
	require.ErrorContains(t, err, "is of another authority than that of cluster")
	status, _ := attic.post(t, remote.Path, "{}")
	require.Equal(t, http.StatusNotFound, status)
}
