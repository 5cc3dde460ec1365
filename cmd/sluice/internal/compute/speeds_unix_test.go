//go:build linux || darwin

package compute

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/system"
)

func TestFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	major, minor, err := system.DeviceOf(path)
	require.NoError(t, err)
	root := fstest.MapFS{"proc/self/mountinfo": {Data: fmt.Appendf(nil, "21 1 0:2 / /proc rw - proc proc rw\n"+
		"36 35 %d:%d / /mnt rw,noatime shared:1 - ext4 /dev/nvme0n1p2 rw\n", major, minor)}}
	require.Equal(t, "ext4 /dev/nvme0n1p2", fileSystem(root, path))
	require.Equal(t, filepath.Dir(path), fileSystem(fstest.MapFS{}, path))
	require.Equal(t, "none", fileSystem(root, ""))
}
