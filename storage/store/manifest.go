package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// Digest is the SHA-256 of a file's content: sha256: and 64 lower-case hexadecimal digits.
type Digest string

var digestText = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseDigest parses a digest in the spelling of Digest; any other text is an error.
func ParseDigest(text string) (Digest, error) {
	if !digestText.MatchString(text) {
		return "", fmt.Errorf("%.80q is no digest: want sha256: and 64 hexadecimal digits", text)
	}
	return Digest(text), nil
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest { return digestFrom(sha256.Sum256(data)) }

func digestFrom(sum [sha256.Size]byte) Digest { return Digest("sha256:" + hex.EncodeToString(sum[:])) }

// file returns the name under which a file with this content lies in the store.
func (d Digest) file() string { return strings.Replace(string(d), ":", "-", 1) }

// In returns the path of the file with this content in a folder of blobs: a store's, or one of Ollama's.
func (d Digest) In(blobs string) string { return filepath.Join(blobs, d.file()) }

// Role is the purpose of a file in its model.
type Role string

const (
	Weights   Role = "weights"   // a GGUF file, or one of its parts, in their order; or safetensors
	Config    Role = "config"    // the files beside safetensors: hyper-parameters, vocabulary, template
	Projector Role = "projector" // how the model sees (mmproj, GGUF)
	Adapter   Role = "adapter"   // what changes the model (LoRA, GGUF)
	Template  Role = "template"
	System    Role = "system"
	Params    Role = "params"
	License   Role = "license"
	Messages  Role = "messages"
)

var roles = map[Role]bool{Weights: true, Config: true, Projector: true, Adapter: true, Template: true, System: true,
	Params: true, License: true, Messages: true}

// File is one file of a model.
type File struct {
	Role   Role   `json:"role"`
	Name   string `json:"name"` // its original name, without a folder
	Size   int64  `json:"size"` // bytes
	Digest Digest `json:"digest"`
}

// Manifest lists the files of a model and its origin.
type Manifest struct {
	Version  int       `json:"version"` // manifestVersion
	Name     string    `json:"name"`    // HOST/OWNER/MODEL:TAG
	Source   string    `json:"source"`  // URL that it was pulled from
	Revision string    `json:"revision"`
	Pulled   time.Time `json:"pulled"`
	Files    []File    `json:"files"`
}

const (
	manifestVersion = 1
	mostManifest    = 1 << 20 // bytes
	mostFiles       = 10000
	mostSize        = 1 << 44 // bytes of a file
)

// Named returns the manifest's name, parsed.
func (m *Manifest) Named() (Name, error) {
	n, err := ParseName(m.Name)
	if err == nil && (n.Tag == "" || n.Full() != m.Name) {
		err = fmt.Errorf("%q is not a whole name: want HOST/OWNER/MODEL:TAG", m.Name)
	}
	return n, err
}

// Size returns the bytes of all files together.
func (m *Manifest) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Weights returns the files that hold tensors.
func (m *Manifest) Weights() []File { return m.of(Weights) }

// named returns the files that are opened by their original names, and so are links in the view.
func (m *Manifest) named() []File {
	return slices.Concat(m.of(Weights), m.of(Config), m.of(Projector))
}

// Adapters returns the files that change the model, in the order in which they were added.
func (m *Manifest) Adapters() []File { return m.of(Adapter) }

func (m *Manifest) of(role Role) (all []File) {
	for _, f := range m.Files {
		if f.Role == role {
			all = append(all, f)
		}
	}
	return all
}

// IsFolder reports whether the model is a folder of files, as Hugging Face's libraries write it, and no GGUF file.
func (m *Manifest) IsFolder() bool { return len(m.of(Config)) > 0 }

// check refuses a manifest that a store cannot hold.
func (m *Manifest) check() error {
	if m.Version != manifestVersion {
		return fmt.Errorf("version is %d, want %d: it was written by another version of sluice", m.Version, manifestVersion)
	}
	if _, err := m.Named(); err != nil {
		return err
	}
	if len(m.Files) > mostFiles {
		return fmt.Errorf("lists %d files, want at most %d", len(m.Files), mostFiles)
	}
	names := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.check(); err != nil {
			return fmt.Errorf("file %d: %w", i+1, err)
		}
		if names[f.Name] {
			return fmt.Errorf("file %d: there are two of the name %q", i+1, f.Name)
		}
		names[f.Name] = true
	}
	if len(m.Weights()) == 0 {
		return errors.New("lists no weights")
	}
	return nil
}

func (f *File) check() error {
	if !roles[f.Role] {
		return fmt.Errorf("role is %.40q, which is none", f.Role)
	}
	if err := CheckFileName(f.Name); err != nil {
		return err
	}
	if f.Size < 0 || f.Size > mostSize {
		return fmt.Errorf("size is %d, want 0 to %d", f.Size, int64(mostSize))
	}
	_, err := ParseDigest(string(f.Digest))
	return err
}

// CheckFileName refuses a name that is no plain name of a file in a folder, or that a terminal or a shell would
// interpret.
func CheckFileName(name string) error {
	bad := func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) }
	if name == "" || len(name) > 200 || strings.HasPrefix(name, ".") || path.Base(name) != name ||
		!utf8.ValidString(name) || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%.80q is no name for a file", name)
	}
	return nil
}

// decodeManifest decodes a manifest that this package has written.
func decodeManifest(data []byte) (*Manifest, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	m := new(Manifest)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("is no manifest: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is no manifest: there is more behind it")
	}
	return m, m.check()
}

// encode returns the manifest as it is stored.
func (m *Manifest) encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil && len(data) >= mostManifest {
		err = fmt.Errorf("has %d bytes, want less than %d", len(data), mostManifest)
	}
	return append(data, '\n'), err
}

// readManifest reads a manifest from a file. Its errors do not name the file.
func readManifest(path string) (*Manifest, error) {
	f, _, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, mostManifest)
	if err != nil {
		return nil, err
	}
	return decodeManifest(data)
}

// view returns the name of the folder of links to these files. Equal files under equal names share a view.
func (m *Manifest) view() string {
	h := sha256.New()
	for _, f := range m.named() {
		fmt.Fprintf(h, "%s %s\n", f.Digest, f.Name)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}
