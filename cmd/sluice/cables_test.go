//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/internal/testref"
)

const (
	cableDelay = time.Millisecond
	cableRate  = 1e9 // bits a second
	cableQueue = 1000
	mostFrame  = 2048 // bytes
)

// cables are a network of this process: frames of each machine reach the others by way of a switch, after a
// millisecond and at a gigabit a second. Kernels that have netem do that themselves; others are many. A machine is a
// network namespace.
type cables struct {
	mu    sync.Mutex
	all   []*cable
	known map[[6]byte]*cable
}

// cable is one machine's.
type cable struct {
	device *os.File
	queue  chan frame // to the machine
	cut    atomic.Bool
	free   time.Time // when what is queued has been sent
}

type frame struct {
	due  time.Time
	data []byte
}

// ip runs the program of that name.
func ip(t testing.TB, words ...string) {
	t.Helper()
	out, err := exec.Command(testref.Tool(t, "iproute2", "ip"), words...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(words, " "), out)
}

// newMachine makes a namespace of its own, which only root can, where machines are no containers.
func newMachine(t *testing.T, name string) {
	t.Helper()
	if out, err := exec.Command(testref.Tool(t, "iproute2", "ip"), "netns", "add", name).CombinedOutput(); err != nil {
		testref.Missing(t, "namespaces", "network namespaces: %v: %s: run it as root", err, out)
	}
	t.Cleanup(func() { ip(t, "netns", "del", name) })
	ip(t, "-n", name, "link", "set", "lo", "up")
}

// plug gives a machine a network device with an address; "": this one.
func (c *cables) plug(t *testing.T, machine, addr string) *cable {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		testref.Missing(t, "namespaces", "/dev/net/tun: %v: run it as root, where there are network devices", err)
	}
	device := fmt.Sprintf("sl%d-%s", os.Getpid()%100000, addr[strings.LastIndexByte(addr, '.')+1:strings.IndexByte(addr, '/')])
	device += addr[5:6] // of which network
	request, err := unix.NewIfreq(device)
	require.NoError(t, err)
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	require.NoError(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, request))
	p := &cable{device: os.NewFile(uintptr(fd), device), queue: make(chan frame, cableQueue)}
	if machine != "" {
		ip(t, "link", "set", device, "netns", machine)
	}
	for _, words := range [][]string{{"addr", "add", addr, "dev", device}, {"link", "set", device, "up"}} {
		if machine != "" {
			words = append([]string{"-n", machine}, words...)
		}
		ip(t, words...)
	}
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	var carrying sync.WaitGroup
	carrying.Go(func() { c.carry(p) })
	queue := p.queue
	carrying.Go(func() { p.deliver(queue) })
	t.Cleanup(func() {
		_ = p.device.Close() // both end by that
		c.mu.Lock()
		close(p.queue)
		p.queue = nil
		c.mu.Unlock()
		carrying.Wait()
	})
	return p
}

// carry brings frames of a machine to whom they are for, or to all.
func (c *cables) carry(from *cable) {
	for {
		data := make([]byte, mostFrame)
		n, err := from.device.Read(data)
		if err != nil {
			return
		}
		if from.cut.Load() || n < 14 {
			continue
		}
		c.mu.Lock()
		if c.known == nil {
			c.known = map[[6]byte]*cable{}
		}
		c.known[[6]byte(data[6:12])] = from
		to := []*cable{c.known[[6]byte(data[:6])]}
		if to[0] == nil {
			to = c.all
		}
		for _, p := range to {
			if p != from {
				p.send(data[:n])
			}
		}
		c.mu.Unlock()
	}
}

// send queues a frame, unless too many are.
func (p *cable) send(data []byte) {
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(len(data)) * 8 / cableRate * float64(time.Second)))
	select {
	case p.queue <- frame{p.free.Add(cableDelay), data}:
	default:
	}
}

func (p *cable) deliver(queue <-chan frame) {
	for f := range queue {
		time.Sleep(time.Until(f.due))
		if !p.cut.Load() {
			_, _ = p.device.Write(f.data) // a machine that is gone gets nothing
		}
	}
}
