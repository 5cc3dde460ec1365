package system

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolders: a variable counts if it is an absolute path, that of XDG before that of Windows; the home is the last.
func TestFolders(t *testing.T) {
	root, err := filepath.Abs("/")
	require.NoError(t, err)
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, c := range []struct {
		variables          map[string]string
		home, data, config string
	}{
		{nil, "", "", ""},
		{map[string]string{"HOME": at("h")}, at("h"), at("h", ".local", "share"), at("h", ".config")},
		{map[string]string{"USERPROFILE": at("u"), "LOCALAPPDATA": at("l"), "APPDATA": at("a")}, at("u"), at("l"), at("a")},
		{map[string]string{"XDG_DATA_HOME": at("d"), "XDG_CONFIG_HOME": at("c"), "LOCALAPPDATA": at("l"), "APPDATA": at("a")},
			"", at("d"), at("c")},
		{map[string]string{"XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": "c"}, "", "", ""},
	} {
		lookup := func(name string) (string, bool) { value, ok := c.variables[name]; return value, ok }
		found := []string{Home(lookup), DataFolder(lookup), ConfigFolder(lookup)}
		require.Equal(t, []string{c.home, c.data, c.config}, found, "%v", c.variables)
	}
}
