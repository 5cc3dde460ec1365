package namedmodel

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/others"
)

func TestStoreDir(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"SLUICE_STORE": "/s", "XDG_DATA_HOME": "/d", "HOME": "/h"}, "/s"},
		{map[string]string{"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/sluice/store"},
		{map[string]string{"XDG_DATA_HOME": "d", "HOME": "/h"}, "/h/.local/share/sluice/store"},
		{map[string]string{"HOME": "/h"}, "/h/.local/share/sluice/store"},
		{nil, ""},
	} {
		lookup := func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }
		dir, err := storeDir(lookup)
		if c.want == "" {
			require.ErrorContains(t, err, "name a folder by SLUICE_STORE")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, filepath.FromSlash(c.want), dir)
	}
}

// Other programs' folders are where their own variables say.
func TestOtherPlaces(t *testing.T) {
	service := "/usr/share/ollama/.ollama/models"
	studio := []string{"/h/.lmstudio/models", "/h/.cache/lm-studio/models"}
	for _, c := range []struct {
		vars map[string]string
		want others.Places
	}{
		{nil, others.Places{}},
		{map[string]string{"HOME": "/h"}, others.Places{Ollama: []string{"/h/.ollama/models", service}, LMStudio: studio,
			HuggingFace: []string{"/h/.cache/huggingface/hub"}}},
		{map[string]string{"USERPROFILE": "/h", "OLLAMA_MODELS": "/o", "XDG_CACHE_HOME": "/c"}, others.Places{Ollama: []string{"/o"},
			LMStudio: studio, HuggingFace: []string{"/c/huggingface/hub"}}},
		{map[string]string{"HF_HOME": "/f", "XDG_CACHE_HOME": "/c"}, others.Places{HuggingFace: []string{"/f/hub"}}},
		{map[string]string{"HF_HUB_CACHE": "/b", "HF_HOME": "/f"}, others.Places{HuggingFace: []string{"/b"}}},
	} {
		lookup := func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }
		require.Equal(t, c.want, OtherPlaces(lookup), "%v", c.vars)
	}
}
