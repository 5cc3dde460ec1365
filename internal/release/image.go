package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Config is how a container of the image starts. It says the same as docs/container/Containerfile.
type Config struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	Healthcheck  Health // read by Docker and podman; the format itself has none
	Labels       map[string]string
}

// Health is how a container is asked whether it is well. Times are in nanoseconds.
type Health struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
}

// nobody is the user that the program runs as, by number: an image has no list of users.
const nobody = 65532

// Started is the configuration of images of a version.
func Started(version string) Config {
	return Config{
		User:         fmt.Sprintf("%d:%[1]d", nobody),
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Env:          []string{"SLUICE_STORE=/models/store", "XDG_CACHE_HOME=/models/cache"},
		Entrypoint:   []string{"/sluice"},
		Cmd:          []string{"serve", "--addr", ":8080", "--stored"},
		Volumes:      map[string]struct{}{"/models": {}},
		Healthcheck: Health{Test: []string{"CMD", "/sluice", "health"}, Interval: 30 * time.Second, Timeout: 5 * time.Second,
			StartPeriod: 10 * time.Minute},
		Labels: map[string]string{"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/sluice-ai/sluice"},
	}
}

// descriptor names a part of an image by its checksum.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const ociType = "application/vnd.oci.image."

// Image writes an image of a container for Linux that has the program, as /sluice, and the certificates that it trusts
// servers by, and nothing else. The format is OCI's layout in a tar, with the list beside it that `docker load` wanted
// before it knew OCI's.
func Image(w io.Writer, version, arch string, program []byte, how How) error {
	layer, diff, err := layerOf(program, how)
	if err != nil {
		return err
	}
	parts := map[string][]byte{}
	add := func(kind string, data []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		parts["blobs/sha256/"+sum] = data
		return descriptor{MediaType: ociType + kind, Digest: "sha256:" + sum, Size: len(data)}
	}
	packed := add("layer.v1.tar+gzip", layer)
	type object = map[string]any
	config := add("config.v1+json", jsonOf(object{"architecture": arch, "os": "linux", "created": how.At.UTC().Format(time.RFC3339),
		"config": Started(version), "rootfs": object{"type": "layers", "diff_ids": []string{diff}},
		"history": []object{{"created": how.At.UTC().Format(time.RFC3339), "created_by": "make release VERSION=" + version}}}))
	manifest := add("manifest.v1+json", jsonOf(object{"schemaVersion": 2, "mediaType": ociType + "manifest.v1+json",
		"config": config, "layers": []descriptor{packed}}))
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": version,
		"io.containerd.image.name": "docker.io/library/sluice:" + version}
	parts["oci-layout"] = jsonOf(object{"imageLayoutVersion": "1.0.0"})
	parts["index.json"] = jsonOf(object{"schemaVersion": 2, "mediaType": ociType + "index.v1+json",
		"manifests": []descriptor{manifest}})
	at := func(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }
	parts["manifest.json"] = jsonOf([]object{{"Config": at(config), "RepoTags": []string{"sluice:" + version},
		"Layers": []string{at(packed)}}})
	var files []File
	for name, data := range parts {
		files = append(files, File{Path: name, Data: data, Mode: 0o644})
	}
	t := tar.NewWriter(w)
	if err := entries(t, "", files, how.At); err != nil {
		return err
	}
	return t.Close()
}

// layerOf packs the files of an image: the tar.gz, and the name that the tar has by its checksum.
func layerOf(program []byte, how How) (layer []byte, diff string, err error) {
	var certificates, packed bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot say what one is not trusted for
			if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, "", err
			}
		}
	}
	z, err := gzip.NewWriterLevel(&packed, how.level())
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	t := tar.NewWriter(io.MultiWriter(z, sum))
	own := header(tar.TypeDir, "models/", 0o755, 0, how.At)
	own.Uid, own.Gid, own.Uname, own.Gname = nobody, nobody, "", ""
	files := []File{{Path: "etc/ssl/certs/ca-certificates.crt", Data: certificates.Bytes(), Mode: 0o644},
		{Path: "sluice", Data: program, Mode: 0o755}}
	if err := t.WriteHeader(own); err != nil {
		return nil, "", err
	}
	if err := entries(t, "", files, how.At); err != nil {
		return nil, "", err
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, "", err
	}
	return packed.Bytes(), fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// jsonOf is a value in JSON. The values of this file always have one.
func jsonOf(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}
