package others

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/store"
)

// write puts a file below a folder, whose path has slashes, and returns where it is.
func write(t testing.TB, dir, path, text string) string {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(path))
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
	require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	return at
}

func link(t testing.TB, dir, path, to string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(path))
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
	require.NoError(t, os.Symlink(filepath.FromSlash(to), at))
}

// layer is a layer of one of Ollama's manifests, whose blob is written unless its kind says otherwise.
type layer struct{ kind, text string }

func (l layer) digest() string {
	sum := sha256.Sum256([]byte(l.text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// manifest writes a model as Ollama does.
func manifest(t testing.TB, root, at string, layers ...layer) {
	t.Helper()
	var list []map[string]any
	for _, l := range layers {
		kind, _ := strings.CutPrefix(l.kind, "missing ")
		list = append(list, map[string]any{"mediaType": "application/vnd.ollama.image." + kind, "digest": l.digest(),
			"size": len(l.text)})
		if kind == l.kind {
			write(t, root, "blobs/"+strings.Replace(l.digest(), ":", "-", 1), l.text)
		}
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "layers": list})
	require.NoError(t, err)
	write(t, root, "manifests/"+at, string(text))
}

// says is what a list shows of a model.
func says(m *Model) string {
	if m.Damage != nil {
		return "damage: " + m.Damage.Error()
	}
	return filepath.Base(m.Path)
}

// shown is a list, by names; what a folder of the test is called is left out.
func shown(all []Model, dir string) map[string]string {
	list := map[string]string{}
	for i := range all {
		list[all[i].Name] = strings.ReplaceAll(says(&all[i]), dir, "DIR")
	}
	return list
}

// state describes all that lies in a folder, to compare with later.
func state(t testing.TB, dir string) (all []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		info, fault := os.Lstat(path)
		if fault == nil {
			all = append(all, path+" "+info.Mode().String()+" "+info.ModTime().String())
		}
		return errors.Join(err, fault)
	}))
	return all
}

func TestOllama(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	own := "registry.ollama.ai/library/"
	model := layer{"model", "weights"}
	manifest(t, dir, own+"llama3.2/1b", model, layer{"system", "Be brief."}, layer{"params", `{"stop":["END"]}`})
	manifest(t, dir, own+"llama3.2/latest", model)
	manifest(t, dir, "registry.ollama.ai/ann/tiny/q8_0", model)
	manifest(t, dir, "hf.co/Bob/Small-GGUF/Q4_K_M", model)
	manifest(t, dir, own+"gone/latest", layer{"missing model", "nobody has it"})
	manifest(t, dir, own+"tuned/latest", model, layer{"adapter", "lora"})
	manifest(t, dir, own+"both/latest", model, model)
	manifest(t, dir, own+"none/latest")
	cut := layer{"model", "these bytes are cut"}
	manifest(t, dir, own+"cut/latest", cut)
	write(t, dir, "blobs/"+strings.Replace(cut.digest(), ":", "-", 1), "these")
	write(t, dir, "manifests/"+own+"torn/latest", `{"schemaVersion": 2, "lay`)
	write(t, dir, "manifests/"+own+"huge/latest", strings.Repeat(" ", mostManifest+1))
	write(t, dir, "manifests/"+own+"aside/latest",
		`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../etc/passwd","size":5}]}`)
	outside := layer{"missing model", "outside"}
	manifest(t, dir, own+"outside/latest", outside)
	link(t, dir, "blobs/"+strings.Replace(outside.digest(), ":", "-", 1), write(t, t.TempDir(), "secret", "outside"))
	link(t, dir, "manifests/"+own+"led/latest", write(t, t.TempDir(), "manifest", "{}"))
	write(t, dir, "manifests/"+own+".DS_Store", "")
	write(t, dir, "manifests/"+own+"deep/er/latest", "{}")
	before := state(t, dir)

	p := Places{Ollama: []string{filepath.Join(dir, "none"), dir}}
	blob := strings.Replace(model.digest(), ":", "-", 1)
	at := "damage: DIR/manifests/" + own
	require.Equal(t, map[string]string{
		"ollama:llama3.2": blob, "ollama:llama3.2:1b": blob, "ollama:ann/tiny:q8_0": blob, "ollama:hf.co/Bob/Small-GGUF:Q4_K_M": blob,
		"ollama:gone":    "damage: a file of it is missing",
		"ollama:tuned":   blob,
		"ollama:both":    at + "both/latest: it has 2 GGUF files of weights, want 1",
		"ollama:none":    at + "none/latest: it has 0 GGUF files of weights, want 1",
		"ollama:cut":     "damage: DIR/blobs/" + strings.Replace(cut.digest(), ":", "-", 1) + " has 5 bytes, want 19",
		"ollama:outside": "damage: it is a link to a file outside of DIR: name that file",
		"ollama:led":     at + "led/latest: it is a link to a file outside of DIR: name that file",
		"ollama:huge":    at + "huge/latest: has more than 1048576 bytes, which is the most that is read here",
		"ollama:torn":    at + "torn/latest: the registry's answer is no manifest: unexpected end of JSON input",
		"ollama:aside": at + `aside/latest: the registry's manifest, layer 1: "sha256:../../../etc/passwd" is no digest: ` +
			"want sha256: and 64 hexadecimal digits",
	}, shown(List(p), dir))

	for _, name := range []string{"ollama:llama3.2:1b", "ollama:LLAMA3.2:1B"} {
		m, err := Find(p, name)
		require.NoError(t, err)
		require.Equal(t, int64(7), m.Size)
		texts, err := m.Texts(store.System)
		require.NoError(t, err)
		require.Equal(t, []string{"Be brief."}, texts)
		texts, err = m.Texts(store.Template)
		require.NoError(t, err)
		require.Empty(t, texts)
	}
	m, err := Find(p, "ollama:llama3.2:latest")
	require.NoError(t, err)
	require.Equal(t, "ollama:llama3.2", m.Name)
	m, err = Find(p, "ollama:tuned")
	require.NoError(t, err)
	paths, err := m.Files(store.Adapter)
	require.NoError(t, err)
	require.Len(t, paths, 1)
	data, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.Equal(t, "lora", string(data))
	for name, want := range map[string]string{
		"ollama:llama3.2:3b": `"ollama:llama3.2:3b" is no model that another program keeps here: sluice list --all shows those that are`,
		"ollama:gone":        "ollama:gone: a file of it is missing",
	} {
		_, err := Find(p, name)
		require.EqualError(t, err, want)
	}
	require.Equal(t, before, state(t, dir), "nothing is changed")
}

func TestLMStudio(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, path := range []string{"Ann/One-GGUF/one-Q4_K_M.gguf", "Ann/One-GGUF/one-Q8_0.gguf", "Ann/One-GGUF/mmproj-one-f16.gguf",
		"Bob/Two-GGUF/two-Q4_0.gguf", "Bob/Two-GGUF/other-Q4_0.gguf", "Bob/Big/UD/big-Q4_K_M-00002-of-00002.gguf",
		"Bob/Big/UD/big-Q4_K_M-00001-of-00002.gguf", "Bob/Half/half-Q8_0-00001-of-00003.gguf", "alone.gguf", "Ann/notes.txt",
		".hidden/x/no.gguf", "a/b/c/d/e/f/g/deep.gguf"} {
		write(t, dir, path, "12345")
	}
	link(t, dir, "Cid/Away/away.gguf", write(t, t.TempDir(), "away.gguf", "12345"))
	link(t, dir, "Cid/Here/here.gguf", "../../Ann/One-GGUF/one-Q8_0.gguf")
	link(t, dir, "Cid/Circle", "../..")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "Cid", "Folder", "folder.gguf"), 0o700))
	before := state(t, dir)
	p := Places{LMStudio: []string{dir, dir}}
	require.Equal(t, map[string]string{
		"lmstudio:Ann/One-GGUF:Q4_K_M": "one-Q4_K_M.gguf", "lmstudio:Ann/One-GGUF:Q8_0": "one-Q8_0.gguf",
		"lmstudio:Bob/Two-GGUF:two-Q4_0": "two-Q4_0.gguf", "lmstudio:Bob/Two-GGUF:other-Q4_0": "other-Q4_0.gguf",
		"lmstudio:Bob/Big:Q4_K_M": "big-Q4_K_M-00001-of-00002.gguf", "lmstudio:Bob/Half:Q8_0": "damage: 1 of 3 parts are there",
		"lmstudio:alone": "alone.gguf", "lmstudio:Cid/Here:here": "here.gguf",
		"lmstudio:Cid/Away:away": "damage: it is a link to a file outside of DIR: name that file",
	}, shown(List(p), dir))
	for name, want := range map[string]string{
		"lmstudio:Ann/One-GGUF": "one-Q4_K_M.gguf", "lmstudio:ann/one-gguf:q8_0": "one-Q8_0.gguf",
		"lmstudio:Ann/One-GGUF/one-Q8_0.gguf": "one-Q8_0.gguf", "lmstudio:Bob/Two-GGUF:two-Q4_0": "two-Q4_0.gguf",
		"lmstudio:Bob/Two-GGUF/other-Q4_0.gguf": "other-Q4_0.gguf", "lmstudio:Bob/Big": "big-Q4_K_M-00001-of-00002.gguf",
		"lmstudio:Bob/Big/big-Q4_K_M-00001-of-00002.gguf": "big-Q4_K_M-00001-of-00002.gguf",
	} {
		m, err := Find(p, name)
		require.NoError(t, err, name)
		require.Equal(t, want, says(m), name)
	}
	big, err := Find(p, "lmstudio:Bob/Big")
	require.NoError(t, err)
	require.Equal(t, int64(10), big.Size, "of all parts")
	for _, name := range []string{"lmstudio:Ann/One-GGUF:Q2_K", "lmstudio:Ann/One", "lmstudio:Ann/One-GGUFs", "lmstudio:Bob/Half",
		"lmstudio:../x", "hf:Ann/One-GGUF"} {
		_, err := Find(p, name)
		require.Error(t, err, name)
	}
	require.Equal(t, before, state(t, dir), "nothing is changed")
}

func TestHuggingFace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	blob := func(repository, revision, path, content string) {
		write(t, dir, repository+"/blobs/"+content, content)
		up := strings.Repeat("../", 2+strings.Count(path, "/"))
		link(t, dir, repository+"/snapshots/"+revision+"/"+path, up+"blobs/"+content)
	}
	one := "models--Ann--One-GGUF"
	blob(one, "aaa", "one-Q4_K_M.gguf", "old")
	blob(one, "aaa", "one-Q8_0.gguf", "eight")
	blob(one, "bbb", "one-Q4_K_M.gguf", "newest")
	blob(one, "bbb", "config.json", "{}")
	write(t, dir, one+"/refs/main", "bbb\n")
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, one, "snapshots", "bbb"), old, old), "that of main counts, not the newest")
	blob("models--Bob--Big", "ccc", "Q4_K_M/big-00001-of-00002.gguf", "1")
	blob("models--Bob--Big", "ccc", "Q4_K_M/big-00002-of-00002.gguf", "22")
	blob("models--Bob--Late", "ddd", "late-00001-of-00002.gguf", "1")
	blob("models--small", "eee", "small.gguf", "s")
	link(t, dir, "models--Cid--Lost/snapshots/fff/lost.gguf", "../../blobs/none")
	link(t, dir, "models--Cid--Away/snapshots/fff/away.gguf", write(t, t.TempDir(), "away", "x"))
	blob("datasets--Ann--Texts", "ggg", "no.gguf", "no")
	write(t, dir, "models--", "no folder")
	write(t, dir, "version.txt", "1")
	before := state(t, dir)
	linked := filepath.Join(t.TempDir(), "hub")
	require.NoError(t, os.Symlink(dir, linked))
	p := Places{HuggingFace: []string{linked}}
	require.Equal(t, map[string]string{
		"hf:Ann/One-GGUF:Q4_K_M": "one-Q4_K_M.gguf", "hf:Ann/One-GGUF:Q8_0": "one-Q8_0.gguf", "hf:Bob/Big:big": "big-00001-of-00002.gguf",
		"hf:Bob/Late:late": "damage: 1 of 2 parts are there", "hf:small:small": "small.gguf",
		"hf:Cid/Lost:lost": "damage: a file of it is missing",
		"hf:Cid/Away:away": "damage: it is a link to a file outside of DIR: name that file",
	}, shown(List(p), dir))
	for name, want := range map[string]string{"hf:Ann/One-GGUF": "newest", "hf:Ann/One-GGUF:q8_0": "eight",
		"hf:Ann/One-GGUF:one-Q8_0.gguf": "eight", "hf:Bob/Big": "1", "hf:Bob/Big/big-00001-of-00002.gguf": "1", "hf:small": "s"} {
		m, err := Find(p, name)
		require.NoError(t, err, name)
		text, err := os.ReadFile(m.Path)
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	require.Equal(t, before, state(t, dir), "nothing is changed")
}

// A name of our store says where else the model is.
func TestKnown(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	manifest(t, at("o"), "registry.ollama.ai/library/tiny/1b", layer{"model", "w"})
	manifest(t, at("o"), "registry.ollama.ai/ann/tiny/latest", layer{"model", "w"})
	manifest(t, at("o"), "hf.co/Dan/Small/Q8_0", layer{"model", "w"})
	write(t, at("l"), "Bob/Two/two-Q4_0.gguf", "w")
	write(t, at("h"), "models--Cid--Three/snapshots/a/three-Q8_0.gguf", "w")
	p := Places{[]string{at("o")}, []string{at("l")}, []string{at("h")}}
	for text, want := range map[string]string{
		"tiny:1b": "ollama:tiny:1b", "ollama.com/ann/tiny": "ollama:ann/tiny", "Bob/Two": "lmstudio:Bob/Two:Q4_0",
		"Cid/Three:Q8_0": "hf:Cid/Three:Q8_0", "hf.co/Dan/Small:Q8_0": "ollama:hf.co/Dan/Small:Q8_0", "tiny:3b": "", "Cid/Three:Q4_0": "",
	} {
		n, err := store.ParseName(text)
		require.NoError(t, err)
		got := ""
		if m := Known(p, n); m != nil {
			got = m.Name
		}
		require.Equal(t, want, got, text)
	}
}

// A folder of many files is looked at so far and no farther, and one that is missing is empty.
func TestBelow(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a", "b/c", "b/d/e", "f"} {
		write(t, dir, path, "")
	}
	require.Equal(t, []string{"a", "b/c", "b/d/e", "f"}, below(dir, 2, 7))
	require.Equal(t, []string{"a", "b/c", "f"}, below(dir, 1, 7))
	require.Equal(t, []string{"a", "b/c", "b/d/e"}, below(dir, 2, 6), "the root is one")
	require.Empty(t, below(filepath.Join(dir, "none"), 2, 7))
}

// FuzzManifest: whatever a manifest says, the list has one model, and what can be used lies in the folder.
func FuzzManifest(f *testing.F) {
	root, err := filepath.EvalSymlinks(f.TempDir())
	require.NoError(f, err)
	at := "registry.ollama.ai/library/m/latest"
	for _, layers := range [][]layer{{{"model", "w"}}, {{"model", "w"}, {"system", "s"}}, {{"missing model", "x"}}, {{"adapter", "a"}}, {}} {
		manifest(f, root, at, layers...)
		text, err := os.ReadFile(filepath.Join(root, "manifests", at))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../x","size":-1}]}`))
	path := filepath.Join(root, "manifests", at)
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		p := Places{Ollama: []string{root}}
		all := List(p)
		require.Len(t, all, 1)
		require.GreaterOrEqual(t, all[0].Size, int64(0))
		m, err := Find(p, all[0].Name)
		require.Equal(t, all[0].Damage == nil, err == nil)
		if err != nil {
			return
		}
		require.Equal(t, filepath.Join(root, "blobs"), filepath.Dir(m.Path))
		info, err := os.Stat(m.Path)
		require.NoError(t, err)
		require.Equal(t, m.Size, info.Size())
		for _, role := range []store.Role{store.System, store.Params, store.Template} {
			_, _ = m.Texts(role) // it may be missing
		}
	})
}
