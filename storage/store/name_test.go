package store

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		text, full, short string // full is empty where text is no name; short: why
	}{
		{"llama3.2", "ollama.com/library/llama3.2:", "llama3.2"},
		{"llama3.2:latest", "ollama.com/library/llama3.2:latest", "llama3.2"},
		{"llama3.2:1b", "ollama.com/library/llama3.2:1b", "llama3.2:1b"},
		{"ollama.com/library/llama3.2:1b", "ollama.com/library/llama3.2:1b", "llama3.2:1b"},
		{"registry.ollama.ai/ann/x", "ollama.com/ann/x:", "ollama.com/ann/x"},
		{"Ann/X-GGUF", "hf.co/Ann/X-GGUF:", "Ann/X-GGUF"},
		{"huggingface.co/Ann/X-GGUF:Q4_K_M", "hf.co/Ann/X-GGUF:Q4_K_M", "Ann/X-GGUF:Q4_K_M"},
		{"HF.co/Ann/X:x-Q8_0.gguf", "hf.co/Ann/X:x-Q8_0", "Ann/X:x-Q8_0"},
		{"https://huggingface.co/Ann/X-GGUF", "hf.co/Ann/X-GGUF:", "Ann/X-GGUF"},
		{"HTTPS://www.huggingface.co/Ann/X-GGUF/?library=gguf#files", "hf.co/Ann/X-GGUF:", "Ann/X-GGUF"},
		{"https://hf.co/Ann/X-GGUF:Q4_K_M", "hf.co/Ann/X-GGUF:Q4_K_M", "Ann/X-GGUF:Q4_K_M"},
		{"https://huggingface.co/Ann/X-GGUF/tree/main", "hf.co/Ann/X-GGUF:", "Ann/X-GGUF"},
		{"https://huggingface.co/Ann/X-GGUF/tree/main?show_file_info=x-Q8_0.gguf", "hf.co/Ann/X-GGUF:x-Q8_0", "Ann/X-GGUF:x-Q8_0"},
		{"https://huggingface.co/Ann/X-GGUF/blob/main/x-Q8_0.gguf", "hf.co/Ann/X-GGUF:x-Q8_0", "Ann/X-GGUF:x-Q8_0"},
		{"https://huggingface.co/Ann/X/resolve/main/a/x-F16-00001-of-00002.gguf?download=true", "hf.co/Ann/X:x-F16", "Ann/X:x-F16"},
		{"huggingface.co/Ann/X/resolve/main/x.gguf", "hf.co/Ann/X:x", "Ann/X:x"},
		{"Ann/X-GGUF/x-Q4_0.gguf", "hf.co/Ann/X-GGUF:x-Q4_0", "Ann/X-GGUF:x-Q4_0"},
		{"https://ollama.com/library/llama3.2", "ollama.com/library/llama3.2:", "llama3.2"},
		{"https://ollama.com/library/llama3.2:1b", "ollama.com/library/llama3.2:1b", "llama3.2:1b"},
		{"https://ollama.com/ann/x", "ollama.com/ann/x:", "ollama.com/ann/x"},
		{"https://huggingface.co/Ann/X/blob/dev/x.gguf", "", `is of the branch "dev": only main can be pulled`},
		{"https://example.com/Ann/X", "", `there are no models of "example.com"`},
		{"https://huggingface.co/", "", "is not made of letters"},
		{"https://huggingface.co/../x.gguf", "", `".." is not made of letters`},
		{"https://huggingface.co/a/b/resolve/main/...gguf", "", `".." after the colon`},
		{"", "", "is not made of letters"},
		{"/", "", "is not made of letters"},
		{"..", "", `".." is not made of letters`},
		{"../x", "", `".." is not made of letters`},
		{"a/..", "", `".." is not made of letters`},
		{"a/b:..", "", `".." after the colon`},
		{"a/b:", "", `"" after the colon`},
		{"a/b:c:d", "", `"c:d" after the colon`},
		{"a/b:c/d", "", `"c/d" after the colon`},
		{"a/b:c/../..", "", `"c/../.." after the colon`},
		{`a\b/c`, "", "is not made of letters"},
		{"a/b\x00", "", "is not made of letters"},
		{".a/b", "", "is not made of letters"},
		{"-a/b", "", "is not made of letters"},
		{"a/ b", "", "is not made of letters"},
		{"a/b/c", "", `there are no models of "a", only of hf.co and ollama.com`},
		{"a/b/c/d", "", "want OWNER/NAME[:QUANT]"},
		{strings.Repeat("a", 97), "", "is not made of letters"},
		{strings.Repeat("a", 401), "", "has 401 characters"},
	} {
		n, err := ParseName(c.text)
		if c.full == "" {
			require.ErrorContains(t, err, c.short, "%q", c.text)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.full, n.Full())
		require.Equal(t, c.short, n.String())
	}
}

// FuzzName: what is a name stays inside the store, is found there under its own name, and is read as it is written.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"a", "a/b:Q4_K_M", "hf.co/a/b:c", "ollama.com/x/y", "../../etc/passwd", "a/..:..", "a/b:../../x",
		"C:\\x", "a//b", "a/b:\u202e", "https://hf.co/a/b/resolve/main/c/d.gguf?x=y", "a/b/c.gguf", "https://ollama.com/x"} {
		f.Add(seed)
	}
	s := &Store{filepath.FromSlash("/store")}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseName(text)
		if err != nil {
			require.Less(t, len(err.Error()), 4*mostName+400)
			return
		}
		again, err := ParseName(n.String())
		require.NoError(t, err)
		if n.Tag == latest {
			again = again.tagged()
		}
		require.Equal(t, n, again)
		whole := n.tagged()
		rel, err := filepath.Rel(s.path(modelsFolder), s.manifestAt(whole))
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(rel), rel)
		require.Len(t, strings.Split(filepath.ToSlash(rel), "/"), 4)
		at, ok := nameAt(filepath.ToSlash(rel))
		require.True(t, ok)
		require.Equal(t, whole, at)
	})
}

func TestPrefer(t *testing.T) {
	for _, c := range []struct {
		tags []string
		want int
	}{
		{[]string{"Q8_0"}, 0},
		{[]string{"F16", "Q8_0", "q4_k_m"}, 2},
		{[]string{"Q2_K", "Q8_0", "Q5_K_M"}, 2},
		{[]string{"zz", "aa"}, 0},
		{[]string{"Q4_K_M", "latest"}, 1},
	} {
		require.Equal(t, c.want, Prefer(c.tags), c.tags)
	}
}

// broken lists what a manifest may not say.
var broken = []struct {
	name string
	edit func(m *Manifest)
	want string
}{
	{"version", func(m *Manifest) { m.Version = 2 }, "version is 2, want 1"},
	{"name", func(m *Manifest) { m.Name = "../../x:y" }, `there are no models of ".."`},
	{"short name", func(m *Manifest) { m.Name = "a/b" }, `"a/b" is not a whole name`},
	{"no files", func(m *Manifest) { m.Files = nil }, "lists no weights"},
	{"no weights", func(m *Manifest) { m.Files[0].Role = License }, "lists no weights"},
	{"role", func(m *Manifest) { m.Files[0].Role = "toy" }, `file 1: role is "toy"`},
	{"file in a folder", func(m *Manifest) { m.Files[0].Name = "../m.gguf" }, `"../m.gguf" is no name for a file`},
	{"hidden file", func(m *Manifest) { m.Files[0].Name = ".m" }, "is no name for a file"},
	{"no file name", func(m *Manifest) { m.Files[0].Name = "" }, "is no name for a file"},
	{"parent", func(m *Manifest) { m.Files[0].Name = ".." }, "is no name for a file"},
	{"escape", func(m *Manifest) { m.Files[0].Name = "a\x1b[31m" }, "is no name for a file"},
	{"backslash", func(m *Manifest) { m.Files[0].Name = `a\b` }, "is no name for a file"},
	{"twice", func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }, `file 2: there are two of the name "m.gguf"`},
	{"negative", func(m *Manifest) { m.Files[0].Size = -1 }, "size is -1"},
	{"huge", func(m *Manifest) { m.Files[0].Size = 1 << 60 }, "size is 1152921504606846976"},
	{"digest", func(m *Manifest) { m.Files[0].Digest = "sha256:../../x" }, "is no digest"},
	{"digest in capitals", func(m *Manifest) { m.Files[0].Digest = Digest(strings.ToUpper(string(m.Files[0].Digest))) }, "is no digest"},
}

func TestManifestRefuses(t *testing.T) {
	good := func() *Manifest {
		m := invent(t, "a/b:Q8_0", 10, "m.gguf").Manifest
		m.Version = manifestVersion
		return &m
	}
	require.NoError(t, good().check())
	for _, c := range broken {
		m := good()
		c.edit(m)
		require.ErrorContains(t, m.check(), c.want, c.name)
	}
	data, err := good().encode()
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                  "is no manifest",
		"null":              "version is 0",
		string(data) + "{}": "there is more behind it",
		strings.Replace(string(data), `"source"`, `"sauce"`, 1): `unknown field "sauce"`,
	} {
		_, err := decodeManifest([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

// FuzzManifest: what is read as a manifest is written back the same, and names nothing outside the store.
func FuzzManifest(f *testing.F) {
	seed := func(edit func(*Manifest)) {
		m := invent(f, "a/b:Q8_0", 10, "m.gguf").Manifest
		m.Version = manifestVersion
		edit(&m)
		data, err := json.Marshal(&m)
		require.NoError(f, err)
		f.Add(data)
	}
	seed(func(*Manifest) {})
	for _, c := range broken {
		seed(c.edit)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			require.True(t, filepath.IsLocal(file.Name))
			require.Equal(t, file.Name, filepath.Base(file.Name))
			require.Equal(t, file.Digest.file(), filepath.Base(file.Digest.file()))
		}
		text, err := m.encode()
		require.NoError(t, err)
		again, err := decodeManifest(text)
		require.NoError(t, err)
		require.True(t, m.Pulled.Equal(again.Pulled))
		again.Pulled = m.Pulled
		require.Equal(t, m, again)
	})
}

// FuzzPieces: no list makes more pieces than there are, and what is taken over was in it.
func FuzzPieces(f *testing.F) {
	p := newPieces(1_000_000)
	f.Add([]byte(p.head() + "3\n0\n15\n"))
	f.Add([]byte(p.head() + "3\n16\n"))
	f.Add([]byte(p.head() + "3\n+1\n01\n1"))
	f.Add([]byte("sluice pieces 2: 16 of 1000000 bytes\n1\n"))
	f.Fuzz(func(t *testing.T, list []byte) {
		p := newPieces(1_000_000)
		p.read(list)
		require.Len(t, p.done, 16)
		require.LessOrEqual(t, p.bytes(), p.size)
		if !strings.HasPrefix(string(list), p.head()) {
			require.Zero(t, p.bytes())
		}
	})
}

func TestPiecesCoverTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 1<<38).Draw(t, "size")
		p := newPieces(size)
		at := int64(0)
		for i := range p.done {
			from, to := p.at(i)
			if from != at || to <= from || to-from > mostPiece {
				t.Fatalf("piece %d lies at %d to %d, want it to begin at %d", i, from, to, at)
			}
			at = to
			p.done[i] = true
		}
		if at != size || p.bytes() != size {
			t.Fatalf("pieces end at %d and hold %d, want %d", at, p.bytes(), size)
		}
	})
}

// A list may end anywhere: a process was killed while it wrote.
func TestPiecesOfACutList(t *testing.T) {
	whole := newPieces(1_000_000).head() + "3\n12\n0\n"
	for n := range len(whole) + 1 {
		p := newPieces(1_000_000)
		require.Equal(t, n == len(whole) || n >= len(p.head()) && whole[n-1] == '\n', p.read([]byte(whole[:n])), n)
		require.False(t, p.done[1], "12 is not 1")
	}
}
