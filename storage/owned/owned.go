// Package owned names files that clients have: below a folder for each owner, by digests of the names that clients
// chose. So no name is a path, and no file can be found without its owner's key.
package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names says what the files hold, and what their names are in the words of its format. Equal names of other Names have
// other digests.
type Names struct{ Of, By string }

// digestSize is the length of a digest in names of files: hexadecimal digits of 128 bits.
const digestSize = 32

// Key is the path of a file below the folder, with slashes: OWNER/NAME.
func (n Names) Key(owner, name string) string {
	return n.digest("owner", owner) + "/" + n.digest(n.By, name)
}

func (n Names) digest(kind, text string) string {
	sum := sha256.Sum256([]byte("sluice " + n.Of + "\x00" + kind + "\x00" + text))
	return hex.EncodeToString(sum[:])[:digestSize]
}

// OwnerOf is the digest of the owner of the file with a key.
func OwnerOf(key string) string {
	owner, _, _ := strings.Cut(key, "/")
	return owner
}

// Files calls found for each regular file in the folders of owners below a path whose name, but for its extension, is a
// digest. What cannot be read below the path itself is not there.
func Files(path string, found func(owner string, file fs.FileInfo)) error {
	owners, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if !o.IsDir() || !isDigest(o.Name()) {
			continue
		}
		entries, _ := os.ReadDir(filepath.Join(path, o.Name()))
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && info.Mode().IsRegular() && isDigest(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))) {
				found(o.Name(), info)
			}
		}
	}
	return nil
}

func isDigest(name string) bool {
	return len(name) == digestSize && strings.Trim(name, "0123456789abcdef") == ""
}
