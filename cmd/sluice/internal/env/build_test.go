package env

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuiltFrom(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}
	require.Empty(t, builtFrom(info))
	info.Main.Version = "v1.2.3"
	require.Equal(t, "v1.2.3", builtFrom(info))
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "2e63f8b0123456789"}, {Key: "vcs.modified", Value: "true"}}
	require.Equal(t, "2e63f8b01234, changed", builtFrom(info))
}
