package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestServeImages: a server's picture is that of the command, whatever texts are computed beside it; a prompt that was
// read before has the same one; and a stream has previews.
func TestServeImages(t *testing.T) {
	folder := filepath.Join(testref.Dir(t), "multimodal", "zimage")
	file := filepath.Join(t.TempDir(), "out.png")
	o := sluice("", "image", "-m", folder, "-o", file, "--size", "64x48", "--steps", "3", "--seed", "5", "a cat")
	require.Zero(t, o.code, o.stderr)
	want, _, _ := pixelsOf(t, file)
	s := launch(t, "--image-model", "painter="+folder)

	texts, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(
		`{"prompt":"one two","max_tokens":200,"stream":true,"ignore_eos":true}`))
	require.NoError(t, err)
	defer texts.Body.Close()
	const body = `{"prompt":"a cat","seed":5,"steps":3,"size":"64x48","model":"painter"%s}`
	for range 2 {
		var said struct {
			Data []struct {
				B64JSON string `json:"b64_json"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(s.good(t, http.MethodPost, "/v1/images/generations", fmt.Sprintf(body, ""))), &said))
		require.Len(t, said.Data, 1)
		data, err := base64.StdEncoding.DecodeString(said.Data[0].B64JSON)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		got, height, width := pixelsOf(t, file)
		require.Equal(t, [2]int{48, 64}, [2]int{height, width})
		require.Equal(t, want, got)
	}
	said := s.good(t, http.MethodPost, "/v1/images/generations", fmt.Sprintf(body, `,"stream":true,"partial_images":1`))
	require.Equal(t, 1, strings.Count(said, "event: image_generation.partial_image\n"))
	require.Equal(t, 1, strings.Count(said, "event: image_generation.completed\n"))
	all, err := io.ReadAll(texts.Body)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(all, []byte("data: [DONE]\n\n")), "the text went on beside it")
	status, said := s.ask(t, http.MethodPost, "/v1/images/generations", fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("x ", 600)))
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, said, "tokens, want at most 512")
}

// TestServeImageModels: what --image-model cannot be is said before the address is taken.
func TestServeImageModels(t *testing.T) {
	multimodal := filepath.Join(testref.Dir(t), "multimodal")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--image-model", unknownModel(t)}, "want ZImagePipeline or FluxPipeline"},
		{[]string{"--image-model", filepath.Join(multimodal, "zimage"), "--image-model", "zimage=" + filepath.Join(multimodal, "zimage")},
			`--image-model has the name "zimage" twice`},
	} {
		o := sluice("", append([]string{"serve", "--addr", "127.0.0.1:0"}, c.args...)...)
		require.NotZero(t, o.code)
		require.Contains(t, o.stderr, c.want)
	}
}
