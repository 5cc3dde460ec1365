//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// passes makes a cluster called home, and is the folder of its members' passes.
func passes(t *testing.T, members ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	made := sluice("", append([]string{"cluster", "cert", "-o", folder, "--cluster", "home"}, members...)...)
	require.Equal(t, exitDone, made.code, made.stderr)
	return folder
}

// memberAddr is where a server of the cluster says that it takes other members.
func memberAddr(t *testing.T, stderr fmt.Stringer) string {
	t.Helper()
	at := regexp.MustCompile(`member \S+ of cluster home, at (\S+)`).FindStringSubmatch(stderr.String())
	require.NotNil(t, at, "%s", stderr)
	return at[1]
}

// TestClusterFlags: what makes no member is said before anything is loaded.
func TestClusterFlags(t *testing.T) {
	dir := passes(t, "a")
	short := sluice("", "cluster", "cert", "-o", dir, "--days", "3", "soon")
	require.Equal(t, exitDone, short.code, short.stderr)
	mine, above := filepath.Join(dir, "a.pem"), filepath.Join(dir, "authority.pem")
	for _, c := range []struct {
		flags, want string
		code        int
	}{
		{"--pass " + mine, "are of members of a cluster: name it with --cluster", exitUsage},
		{"--join h:1", "name it with --cluster", exitUsage},
		{"--cluster home", "needs --pass FILE (sluice cluster cert makes it) and --member-addr", exitUsage},
		{"--cluster home --pass " + mine, "needs --pass FILE", exitUsage},
		{"--cluster home --member-addr 127.0.0.1:0 --pass none.pem", "none.pem: no such file", exitFailed},
		{"--cluster home --member-addr 127.0.0.1:0 --pass " + above, "it is the authority of cluster", exitFailed},
		{"--cluster work --member-addr 127.0.0.1:0 --pass " + mine, `is of cluster "home", and --cluster is "work"`, exitUsage},
		{"--cluster home --member-addr :7777 --pass " + mine, "want HOST:PORT by which others reach this machine", exitUsage},
		{"--cluster home --member-addr 0.0.0.0:0 --pass " + mine, "want HOST:PORT by which others", exitUsage},
		{"--cluster home --member-addr 127.0.0.1 --pass " + mine, "want HOST:PORT by which others", exitUsage},
		{"--cluster home --member-addr 127.0.0.1:0 --join h --pass " + mine, `--join: "h" is no address of a member`, exitUsage},
		{"--cluster home --member-addr 127.0.0.1:0 --join zoo://h --pass " + mine, `--join: "zoo://" is a registry that is not known`, exitUsage},
		{"--cluster home --member-addr 127.0.0.1:0 --join h --pass " + filepath.Join(dir, "soon.pem"), "the pass of soon ends on 2026-11-23", exitUsage},
	} {
		o := sluice("", append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(c.flags)...)...)
		require.Equal(t, c.code, o.code, "%s: %s", c.flags, o.stderr)
		require.Contains(t, o.stderr, c.want, c.flags)
	}
}

// asked asks a server of a cluster, and returns what it knew of the prompt, and the answer.
func askedMember(t *testing.T, url string) (cached int, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"temperature":0,"max_tokens":8,"messages":[{"role":"user","content":%q}]}`, "m",
		strings.Repeat("What is the capital of France? ", 40))
	q, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer k")
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", said)
	var got kept
	require.NoError(t, json.Unmarshal(said, &got))
	return got.Usage.Of.Cached, got.Choices[0].Message.Content
}

// members are the names of the members that a server hears, itself left out.
func members(t *testing.T, url string) (names string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, url+"/cluster", nil)
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer k")
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	var got struct {
		Members []struct{ Member string }
	}
	require.NoError(t, json.NewDecoder(r.Body).Decode(&got))
	for _, m := range got.Members[1:] {
		names += m.Member
	}
	return names
}

// streamedBy asks a server for the n-th long answer, as a stream, and calls in in the middle of it. If it is not
// answered by that member, it returns "".
func streamedBy(t *testing.T, url string, n int, by string, in func()) (text string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":true,"seed":3,"max_tokens":1500,"ignore_eos":true,"prompt":%q}`,
		fmt.Sprint(n, " once upon a time"))
	q, err := http.NewRequest(http.MethodPost, url+"/v1/completions", strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer k")
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	if by != "" && r.Header.Get("X-Sluice-Member") != by {
		return ""
	}
	from, done := bufio.NewScanner(r.Body), false
	for i := 0; from.Scan(); i++ {
		if i == 10 && in != nil {
			in()
		}
		var got struct{ Choices []struct{ Text string } }
		line := strings.TrimPrefix(from.Text(), "data: ")
		if done = done || line == "[DONE]"; json.Unmarshal([]byte(line), &got) == nil && len(got.Choices) > 0 {
			text += got.Choices[0].Text
		}
	}
	require.NoError(t, from.Err())
	require.True(t, done, "the answer is not whole")
	return text
}

// Three processes find each other by the address of one. What one was asked, each of them knows; when a member is
// killed, the others answer, and go on with its streams; one that is stopped leaves without an error.
func TestClusterOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers, of which one is killed")
	}
	dir := passes(t, "a", "b", "c")
	defer http.DefaultClient.CloseIdleConnections()
	type member struct {
		url string
		c   *exec.Cmd
	}
	all := map[string]member{}
	first := ""
	for _, name := range []string{"a", "b", "c"} {
		flags := []string{"--name", "m", "--cluster", "home", "--pass", filepath.Join(dir, name+".pem"), "--member-addr", "127.0.0.1:0"}
		if first != "" {
			flags = append(flags, "--join", first)
		}
		url, c, stderr := startApart(t, flags...)
		if at := memberAddr(t, stderr); first == "" {
			first = at
		}
		all[name] = member{url, c}
	}
	sees := func(name, others string) {
		require.Eventually(t, func() bool { return members(t, all[name].url) == others }, time.Minute, 20*time.Millisecond)
	}
	sees("a", "bc")
	sees("b", "ac")
	sees("c", "ab")
	for _, words := range [][]string{{"cluster"}, {"top"}} {
		o := sluice("", append(words, "--api-key", "k", "--addr", strings.TrimPrefix(all["a"].url, "http://"))...)
		require.Equal(t, exitDone, o.code, o.stderr)
		require.Regexp(t, `(?m)^cluster home +for members +heard +models\na +127\.0\.0\.1:\d+ +it is asked +m\n`+
			`b +127\.0\.0\.1:\d+ +[\d.]+m?s ago +m\nc +127\.0\.0\.1:\d+ +[\d.]+m?s ago +m\n`, o.stdout)
	}
	cached, want := askedMember(t, all["a"].url)
	require.Zero(t, cached)
	for _, name := range []string{"b", "c", "a"} {
		require.Eventually(t, func() bool {
			cached, text := askedMember(t, all[name].url)
			require.Equal(t, want, text)
			return cached > 0
		}, time.Minute, 20*time.Millisecond, name)
	}
	killed := func() { kill(all["b"].c, syscall.SIGKILL) }
	long, whole := "", ""
	for n := 0; long == ""; n++ { // until it is b's
		long = streamedBy(t, all["a"].url, n, "b", killed)
		whole = streamedBy(t, all["c"].url, n, "", nil)
	}
	require.Equal(t, whole, long, "what b began goes on elsewhere")
	for _, name := range []string{"a", "c", "a", "c"} {
		_, text := askedMember(t, all[name].url)
		require.Equal(t, want, text)
	}
	sees("a", "c")
	require.NoError(t, all["a"].c.Process.Signal(os.Interrupt))
	require.NoError(t, all["a"].c.Wait())
	_, text := askedMember(t, all["c"].url)
	require.Equal(t, want, text)
	sees("c", "")
}
