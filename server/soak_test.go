package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// asChild in the environment makes the test's program a server that ends with its standard input.
const asChild = "SLUICE_TEST_SERVES"

// soakTime in the environment is how long TestSoak and TestHostileCrowd take: "5m" is the soak that is asked for.
const soakTime = "SLUICE_SOAK"

// serveChild serves the embedded model and prints its address.
func serveChild() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	device, err := cpu.New(0, "")
	must(err)
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	must(err)
	model := actors.Model{File: f, Context: 4096}
	engine, err := actors.Start(context.Background(), actors.Config{Model: model, Device: device})
	must(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	s := New(Engines(engine), Options{Log: zerolog.New(os.Stderr).Level(zerolog.ErrorLevel)})
	if left, err := strconv.Atoi(os.Getenv(filesLeft)); err == nil {
		hold(left)
	}
	go func() { must(s.Serve(ln)) }()
	fmt.Println(ln.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// child is a server in a process of its own.
type child struct {
	url, addr string
	pid       int
	http      *http.Client
}

func startChild(t *testing.T) *child {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0]))
}

// startCommand runs the test's program as a server.
func startCommand(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, and counts descriptors")
	}
	cmd.Env = append(os.Environ(), asChild+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait(), "the server did not survive")
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	addr := strings.TrimSpace(line)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	return &child{"http://" + addr, addr, cmd.Process.Pid, client}
}

// memory is a line of the child's status, in bytes: VmRSS, or VmHWM, the most that it ever was.
func (c *child) memory(t *testing.T, line string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(status), line+":")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}

// warm is the memory that the child needs after some time, in which a busy machine may do little, and once it has
// done enough.
func (c *child) warm(ctx context.Context, t *testing.T, after time.Duration, enough func() bool) int64 {
	t.Helper()
	for time.Sleep(after); !enough() && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
	}
	return c.memory(t, "VmRSS")
}

// ask posts a body and returns the status.
func (c *child) ask(path, body string) (int, error) {
	answer, err := c.http.Post(c.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// TestHostileCrowd: 12 clients with bodies of 15 MB cost a server less than 1 GB beside its model, and others less than
// twice their time.
func TestHostileCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	c := startChild(t)
	const small = `{"prompt":"one two three","max_tokens":64,"temperature":0,"ignore_eos":true}`
	latency := func(n int) time.Duration {
		var all []time.Duration
		for range n {
			began := time.Now()
			status, err := c.ask("/v1/completions", small)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[n/2]
	}
	latency(10)
	alone, before := latency(40), c.memory(t, "VmRSS")
	var bodies []string
	for _, i := range []int{0, 1, 5, 6, 7, 9, 11} {
		bodies = append(bodies, hostile[i].path, hostileText(hostile[i].head, hostile[i].unit, hostile[i].tail, 15<<20))
	}
	ctx, end := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	var asked, refused atomic.Int64
	for i := range 12 {
		crowd.Go(func() {
			for k := i; ctx.Err() == nil; k++ {
				at := k % (len(bodies) / 2) * 2
				if status, err := c.ask(bodies[at], bodies[at+1]); err != nil || status != 400 && status != 503 {
					t.Errorf("body %d: %d %v", at/2, status, err)
				} else if status == 503 {
					refused.Add(1)
				}
				asked.Add(1)
			}
		})
	}
	time.Sleep(2 * time.Second)
	among := latency(40)
	end()
	crowd.Wait()
	peak := c.memory(t, "VmHWM")
	t.Logf("%d bodies, %d of them told to come later; latency %v alone, %v among them; %d MiB before, at most %d", asked.Load(),
		refused.Load(), alone, among, before>>20, peak>>20)
	require.Less(t, peak-before, int64(1<<30))
	if os.Getenv(soakTime) != "" {
		require.Less(t, among, 2*alone)
	}
}

// TestSoak: 40 clients of all kinds, and what a server needs after some time is what it needed after a fifth of it.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	total := 20 * time.Second
	if text := os.Getenv(soakTime); text != "" {
		var err error
		total, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	c := startChild(t)
	r := &running{addr: c.addr, url: c.url, http: c.http}
	ctx, end := context.WithTimeout(t.Context(), total)
	defer end()
	var clients sync.WaitGroup
	var answered atomic.Int64
	for i := range 40 {
		clients.Go(func() {
			for k := i; ctx.Err() == nil; k += 40 {
				if soakOne(t, r, k) {
					answered.Add(1)
				}
			}
		})
	}
	early := c.warm(ctx, t, total/5, func() bool { return answered.Load() >= 2*40 })
	clients.Wait()
	time.Sleep(3 * time.Second)
	late := c.memory(t, "VmRSS")
	t.Logf("%d answers; %d MiB after %v, %d after %v, at most %d", answered.Load(), early>>20, total/5, late>>20, total,
		c.memory(t, "VmHWM")>>20)
	require.Less(t, late, early*12/10)
	status, err := c.ask("/v1/completions", `{"prompt":"one","max_tokens":2}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

// soakOne does what one of many clients does, and says whether it got an answer.
func soakOne(t *testing.T, r *running, k int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch k % 10 {
	case 0: // leaves
		_, err := r.ask(ctx, question(k), 3, 0)
		return err == nil
	case 1: // slow
		_, err := r.ask(ctx, question(k), 0, 20*time.Millisecond)
		return err == nil
	case 2: // several choices, not streamed
		body := strings.Replace(question(k), `"stream":true`, `"n":3`, 1)
		answer, err := r.http.Post(r.url+"/v1/chat/completions", "", strings.NewReader(body))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK
	case 3:
		r.rubbish(t, uint64(k))
		return false
	case 4: // hostile, and smaller than it could be
		h := hostile[k/10%len(hostile)]
		answer, err := r.http.Post(r.url+h.path, "", strings.NewReader(hostileText(h.head, h.unit, h.tail, 1<<20)))
		if err == nil {
			answer.Body.Close()
		}
		return false
	}
	_, err := r.ask(ctx, question(k), 0, 0)
	return err == nil
}
