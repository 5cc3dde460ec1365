package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestPackedFoldersRun: a folder that another tool packed is opened as the folder of its numbers is, tensor for tensor.
func TestPackedFoldersRun(t *testing.T) {
	for _, p := range converttest.Packings() {
		t.Run(p.Name, func(t *testing.T) {
			packed, plain := p.Folders(t)
			got, err := OpenFolder(packed, convert.Options{})
			require.NoError(t, err)
			defer got.Close()
			want, err := OpenFolder(plain, convert.Options{})
			require.NoError(t, err)
			defer want.Close()
			require.Len(t, got.Tensors, len(want.Tensors))
			for i := range got.Tensors {
				x := &got.Tensors[i]
				same, ok := want.Tensor(x.Name)
				require.True(t, ok, x.Name)
				require.Equal(t, same.Type, x.Type, x.Name)
				require.NoError(t, got.View(x, func(a []byte) error {
					return want.View(same, func(b []byte) error {
						require.Equal(t, b, a, x.Name)
						return nil
					})
				}))
			}
		})
	}
}
