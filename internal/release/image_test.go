package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// untar reads a tar's files, and the headers of all that is in it.
func untar(t *testing.T, packed io.Reader) (data map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	data, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return data, headers
		}
		require.NoError(t, err)
		require.True(t, h.ModTime.Equal(day), h.Name)
		headers[h.Name] = h
		data[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

// TestImage: parts of an image are named by their checksums, from the index down to the files of the layer, which are
// the program, a folder that it may write into, and certificates that Go reads; equal programs give equal bytes.
func TestImage(t *testing.T) {
	var image, again bytes.Buffer
	require.NoError(t, Image(&image, "1.2.3", "arm64", []byte("program"), How{At: day}))
	require.NoError(t, Image(&again, "1.2.3", "arm64", []byte("program"), How{At: day.UTC()}))
	require.Equal(t, image.Bytes(), again.Bytes())
	parts, _ := untar(t, &image)
	require.Len(t, parts, 8, "three parts, three lists, two folders")
	part := func(d descriptor) []byte {
		sum := d.Digest[len("sha256:"):]
		data := parts["blobs/sha256/"+sum]
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(data)))
		require.Len(t, data, d.Size)
		return data
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		Architecture, OS string
		Config           Config
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(parts["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	require.NoError(t, json.Unmarshal(part(index.Manifests[0]), &manifest))
	require.NoError(t, json.Unmarshal(part(manifest.Config), &config))
	require.Equal(t, "linux/arm64", config.OS+"/"+config.Architecture)
	require.Equal(t, Started("1.2.3"), config.Config)
	require.Len(t, manifest.Layers, 1)
	plain, err := gzip.NewReader(bytes.NewReader(part(manifest.Layers[0])))
	require.NoError(t, err)
	layer, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}, config.RootFS.DiffIDs)
	files, headers := untar(t, bytes.NewReader(layer))
	require.Len(t, files, 6)
	require.Equal(t, "program", string(files["sluice"]))
	require.EqualValues(t, 0o755, headers["sluice"].Mode)
	require.Zero(t, headers["sluice"].Uid)
	require.Equal(t, nobody, headers["models/"].Uid)
	require.Equal(t, nobody, headers["models/"].Gid)
	require.True(t, x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]))
	require.Greater(t, bytes.Count(files["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")), 50)
}

// TestImageIsOthers: a tool for images that we did not write reads one in both of its forms, checks it, and writes the
// same layer and configuration.
func TestImageIsOthers(t *testing.T) {
	skopeo := testref.Tool(t, "skopeo", "skopeo")
	folder := t.TempDir()
	path := filepath.Join(folder, "image.tar")
	var image bytes.Buffer
	require.NoError(t, Image(&image, "1.2.3", "amd64", []byte("program"), How{At: day}))
	require.NoError(t, os.WriteFile(path, image.Bytes(), 0o600))
	said, err := exec.Command(skopeo, "inspect", "--config", "--raw", "oci-archive:"+path+":1.2.3").CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), `"Entrypoint":["/sluice"]`)
	for _, form := range []string{"oci-archive:" + path, "docker-archive:" + path + ":sluice:1.2.3"} {
		to := filepath.Join(folder, form[:3])
		said, err := exec.Command(skopeo, "--insecure-policy", "--tmpdir", folder, "copy", form, "dir:"+to).CombinedOutput()
		require.NoError(t, err, "%s: %s", form, said)
		parts, _ := untar(t, bytes.NewReader(image.Bytes()))
		var list []struct{ Config string }
		require.NoError(t, json.Unmarshal(parts["manifest.json"], &list))
		config, err := os.ReadFile(filepath.Join(to, filepath.Base(list[0].Config)))
		require.NoError(t, err)
		require.Equal(t, parts[list[0].Config], config)
	}
}
