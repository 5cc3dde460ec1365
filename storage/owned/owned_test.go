package owned

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKey: keys are what files of versions before have, and differ in all that they are of.
func TestKey(t *testing.T) {
	answers := Names{"answers", "id"}
	require.Equal(t, "a63a1c706d20a0951479e0071ac217df/e7a4c1ad7464f4c0c07082b5f10cc20b",
		answers.Key("a", "1"))
	seen := map[string]bool{}
	for _, n := range []Names{answers, {"sessions", "name"}, {"answers", "name"}} {
		for _, owner := range []string{"", "a", "../a"} {
			for _, name := range []string{"", "a", "../a", "a\x00a"} {
				key := n.Key(owner, name)
				require.Regexp(t, `^[0-9a-f]{32}/[0-9a-f]{32}$`, key)
				require.False(t, seen[key])
				seen[key] = true
				require.Equal(t, key[:32], OwnerOf(key))
			}
		}
	}
}

// TestFiles finds what is named by digests, and nothing else.
func TestFiles(t *testing.T) {
	dir, key := t.TempDir(), Names{"answers", "id"}.Key("a", "1")
	owner, name := filepath.Split(filepath.FromSlash(key))
	for _, path := range []string{key, key + ".open", owner + "other", owner + name + "0", "short/" + name, name} {
		at := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, owner, name[1:]+"0"), 0o700))
	var found []string
	require.NoError(t, Files(dir, func(owner string, file fs.FileInfo) { found = append(found, owner+"/"+file.Name()) }))
	require.Equal(t, []string{key, key + ".open"}, found)
	require.Error(t, Files(filepath.Join(dir, "nowhere"), nil))
}
