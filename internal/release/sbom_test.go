package release

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSBOM: the bill of a program that go build made has its modules with versions and checksums, those that replace
// others in their places, and Go itself; the program needs all of them.
func TestSBOM(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pack")
	said, err := exec.Command("go", "build", "-o", program, "./pack").CombinedOutput()
	require.NoError(t, err, "%s", said)
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/one", Version: "v0.1.0", Sum: "h1:y"})
	other := &debug.Module{Path: "example.com/other", Version: "v3.2.1", Sum: "h1:x"}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/old", Version: "v1.0.0", Replace: other})
	info.Settings = append(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: "abc"})
	var out bytes.Buffer
	require.NoError(t, SBOM(&out, "1.2.3", info, day))
	var got bom
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, "CycloneDX", got.Format)
	require.Equal(t, "1.6", got.Spec)
	require.Equal(t, "2026-11-27T11:00:00Z", got.Metadata.Timestamp)
	require.Equal(t, "pkg:golang/github.com/sluice-ai/sluice@v1.2.3", got.Metadata.Component.PURL)
	require.Contains(t, got.Metadata.Component.Properties, property{"go:vcs.revision", "abc"})
	require.Len(t, got.Components, len(info.Deps)+1)
	require.Equal(t, "stdlib", got.Components[0].Name)
	require.Regexp(t, `^\d+\.\d+`, got.Components[0].Version)
	one := got.Components[len(got.Components)-2]
	require.Equal(t, "pkg:golang/example.com/one@v0.1.0", one.PURL)
	require.Equal(t, []property{{"go:sum", "h1:y"}}, one.Properties)
	last := got.Components[len(got.Components)-1]
	require.Equal(t, component{Type: "library", Ref: last.PURL, Name: "example.com/other", Version: "v3.2.1",
		PURL: "pkg:golang/example.com/other@v3.2.1", Properties: []property{{"go:sum", "h1:x"}}}, last)
	require.Len(t, got.Dependencies, 1)
	require.Equal(t, got.Metadata.Component.Ref, got.Dependencies[0].Ref)
	for _, c := range got.Components {
		require.Contains(t, got.Dependencies[0].DependsOn, c.Ref)
	}
	require.ErrorContains(t, SBOM(io.Discard, "1.2.3", &debug.BuildInfo{}, day), "does not say which module it is of")
}
