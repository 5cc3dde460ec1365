package store

import (
	"bufio"
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// killedStore names the store of a process that is to be killed.
const killedStore = "SLUICE_TEST_KILLED_STORE"

// TestKilledAnywhere kills processes that do nothing but pull, make, copy and remove small models, two at a time: they
// are between two system calls of a change most of the time. Whatever they leave, every model that is listed is whole,
// and the next process can do all that it could before.
func TestKilledAnywhere(t *testing.T) {
	if dir := os.Getenv(killedStore); dir != "" {
		churn(t, dir)
	}
	s := open(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		var both []*exec.Cmd
		for range 2 {
			c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
			c.Env = append(os.Environ(), killedStore+"="+s.dir)
			out, err := c.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, c.Start())
			both = append(both, c)
			_, err = bufio.NewReader(out).ReadString('\n') // it has begun
			require.NoError(t, err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond)))) // any moment will do
		for _, c := range both {
			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())
			require.Negative(t, c.ProcessState.ExitCode(), "it ended by itself")
		}
		works(t, s)
	}
	for _, m := range churned(t) {
		n, err := m.Named()
		require.NoError(t, err)
		_, err = s.Remove(context.Background(), n)
		if err != nil {
			require.ErrorAs(t, err, new(*Absent))
		}
	}
	if _, err := s.Remove(context.Background(), name(t, "made")); err != nil {
		require.ErrorAs(t, err, new(*Absent))
	}
	waiting, err := os.ReadDir(s.path(uploadsFolder))
	require.NoError(t, err)
	for _, entry := range waiting { // a day passes
		old := time.Now().Add(-2 * uploadsLast)
		require.NoError(t, os.Chtimes(s.path(uploadsFolder, entry.Name()), old, old))
	}
	require.NoError(t, s.change(context.Background(), s.collect))
	require.Empty(t, tree(t, s), "nothing is left of what was killed")
}

// TestHalfManifestGoes: a manifest that had not come to its name when its process was killed goes, though nobody puts
// another one there, and so does its folder; those beside it stay.
func TestHalfManifestGoes(t *testing.T) {
	s := open(t)
	m := churned(t)[1]
	m.pull(t, s)
	beside := filepath.Dir(s.manifestAt(name(t, "a/c:Q8_0")))
	for _, folder := range []string{beside, filepath.Join(filepath.Dir(beside), "gone")} {
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, ".F16.json.sluice"), []byte("{"), 0o600))
	}
	before := tree(t, s)
	require.NoError(t, s.change(context.Background(), s.collect))
	require.Len(t, tree(t, s), len(before)-2)
	require.NoDirExists(t, filepath.Join(filepath.Dir(beside), "gone"))
	_, err := s.Resolve("a/c")
	require.NoError(t, err)
}

// churned are models that have files in common.
func churned(t *testing.T) []*model {
	return []*model{invent(t, "a/b:Q8_0", 1000, "x.gguf", "y.gguf"), invent(t, "a/c:Q8_0", 1000, "y.gguf"),
		invent(t, "copy", 1000, "x.gguf")}
}

// churn changes a store without an end.
func churn(t *testing.T, dir string) {
	s, err := Open(dir)
	require.NoError(t, err)
	ctx, models := context.Background(), churned(t)
	for i := 0; ; i++ {
		if i == 1 {
			os.Stdout.WriteString("begun\n")
		}
		for _, m := range models[:2] {
			p, err := m.bring(s)
			require.NoError(t, err)
			require.NoError(t, p.Commit(ctx))
			p.Close()
		}
		data := content("uploaded", 3000)
		_, err := s.Upload(ctx, DigestOf(data), -1, bytes.NewReader(data))
		require.NoError(t, err)
		_, err = s.Make(ctx, name(t, "made"), "", []Layer{
			{File: File{Role: Weights, Name: "m.gguf"}, Data: data}, {File: File{Role: System, Name: "system"}, Data: data[:99]},
		})
		require.NoError(t, err)
		_ = s.Copy(ctx, name(t, "a/b"), name(t, "copy"), false) // the other process may have done so, or removed it
		for _, gone := range []string{"a/b", "copy", "a/c", "made"} {
			_, _ = s.Remove(ctx, name(t, gone))
		}
	}
}

// works checks that what is listed is whole, and that a pull and a removal do what they should.
func works(t *testing.T, s *Store) {
	t.Helper()
	again, err := Open(s.dir)
	require.NoError(t, err)
	list, err := again.List()
	require.NoError(t, err)
	for i := range list {
		require.NoError(t, list[i].Damage)
		path, err := again.Path(&list[i])
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, list[i].Files[0].Digest, DigestOf(data))
	}
	m := churned(t)[0]
	m.pull(t, again)
	_, err = again.Resolve("a/b")
	require.NoError(t, err)
	_, err = again.Remove(context.Background(), name(t, "a/b"))
	require.NoError(t, err)
}
