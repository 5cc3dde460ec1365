package measure

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/devices"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

type Doctor struct {
	models.Flag
	Actors   bool   `xor:"what" help:"Show the engine's actors: who may send what to whom, and how much of it."`
	Probe    bool   `xor:"what" help:"Measure how fast disk and memory are read, and keep it for plans: on the file system of -m, else of this folder."`
	Selftest bool   `name:"selftest" xor:"what" help:"Test this machine, for some seconds: every kernel that it would use against plain loops, an answer of the embedded model, a file on the drive of this folder. If something fails, the exit code is 1."`
	Device   string `placeholder:"NAME" help:"Only the device that --selftest tests: cpu, cuda, cuda:N, vulkan, vulkan:N. Default: the processor, and every card that is taken unasked."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

func (Doctor) Examples() [2]string {
	return [2]string{`sluice doctor --selftest`, `sluice doctor --probe -m model.gguf`}
}

func (c *Doctor) Run(e *env.Env) error {
	if c.Actors {
		if c.JSON {
			return env.PrintJSON(e.Stdout, actors.Edges())
		}
		return printEdges(e.Stdout, actors.Edges())
	}
	switch {
	case c.Device != "" && !c.Selftest:
		return env.Usagef("--device says what --selftest tests: add --selftest, or leave out --device")
	case c.Model != "" && !c.Probe:
		return env.Usagef("-m says where --probe measures: add --probe, or leave out -m")
	case c.Probe:
		return c.probe(e)
	case c.Selftest:
		return c.selftest(e)
	}
	findings := examine(e)
	if c.JSON {
		return env.PrintJSON(e.Stdout, findings)
	}
	return printFindings(e, findings)
}

// probe measures anew, and ignores kept measurements.
func (c *Doctor) probe(e *env.Env) (err error) {
	var s compute.Speeds
	if c.Model == "" {
		s, err = compute.MeasureHere(e, ".")
	} else {
		var file *gguf.File
		if file, err = namedmodel.Open(e.Lookup, c.Model); err != nil {
			return err
		}
		s, err = compute.MeasureSpeeds(e, file.Part(0), file.Part(0).Path)
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		err = compute.Keep(e, s)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return env.PrintJSON(e.Stdout, s)
	}
	return printFindings(e, ofSpeeds(&s))
}

func printEdges(w io.Writer, edges []actors.Declared) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tTO\tCARRIES\tCREDITS\tCOUNTED BY\tWITHOUT CREDIT")
	for _, d := range edges {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", d.From, d.To, d.Carries, d.Credits, d.By, d.Full)
	}
	return t.Flush()
}

// Finding is one line of doctor. Its JSON names are part of the interface.
type Finding struct {
	What  string `json:"what"`
	State string `json:"state"`
	OK    bool   `json:"ok"`
	Do    string `json:"do,omitempty"` // what a person can do about it; empty if it is well

	Absent bool `json:"absent,omitempty"` // the machine has none, which is no fault
}

// examine examines the machine: processor and limits by system calls, the rest in e.Root.
func examine(e *env.Env) []Finding {
	list := []Finding{processor(&cpuid.CPU)}
	list = append(list, instructions(&cpuid.CPU))
	forced, _ := e.Lookup("SLUICE_CPU")
	list = append(list, kernelsFor(forced))
	list = append(append(list, cards()...), gpus(e)...)
	return append(list, memory(e.Root), hugePages(e.Root), directReads(), lockedMemory(), freeDisk("."))
}

// printFindings prints a line for each, on a terminal in its columns.
func printFindings(e *env.Env, findings []Finding) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		mark := "ok"
		switch {
		case f.Absent:
			mark = "-"
		case !f.OK:
			mark = "!"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, f.What, f.State)
		if f.Do != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", f.Do)
		}
	}
	err := t.Flush()
	out := text.String()
	if e.IsTerminal(e.Stdout) {
		out = env.Wrapped(out, e.Columns(e.Stdout))
	}
	_, printed := io.WriteString(e.Stdout, out)
	return errors.Join(err, printed)
}

func processor(c *cpuid.CPUInfo) Finding {
	state := fmt.Sprintf("%s, %s usable", compute.ProcessorName(c), env.Count(runtime.NumCPU(), "thread"))
	if c.Cache.L2 > 0 {
		state += ", L2 " + env.BinarySize(int64(c.Cache.L2))
	}
	if c.Cache.L3 > 0 {
		state += ", L3 " + env.BinarySize(int64(c.Cache.L3))
	}
	return Finding{What: "processor", State: state, OK: true}
}

// instructions lists the instruction sets that matter for dot products of integers and floats.
func instructions(c *cpuid.CPUInfo) Finding {
	f := Finding{What: "instructions", OK: true}
	var have []string
	for _, set := range []struct {
		name string
		ids  []cpuid.FeatureID
	}{
		{"AVX2", []cpuid.FeatureID{cpuid.AVX2, cpuid.FMA3, cpuid.F16C}},
		{"AVX-VNNI", []cpuid.FeatureID{cpuid.AVXVNNI}},
		{"AVX-512", []cpuid.FeatureID{cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512DQ}},
		{"AVX-512 VNNI", []cpuid.FeatureID{cpuid.AVX512VNNI}},
		{"AVX-512 BF16", []cpuid.FeatureID{cpuid.AVX512BF16}},
		{"AMX int8", []cpuid.FeatureID{cpuid.AMXTILE, cpuid.AMXINT8}},
		{"NEON", []cpuid.FeatureID{cpuid.ASIMD}},
		{"NEON dot product", []cpuid.FeatureID{cpuid.ASIMDDP}},
	} {
		if c.Supports(set.ids...) {
			have = append(have, set.name)
		}
	}
	f.State = strings.Join(have, ", ")
	if !slices.Contains(have, "AVX2") && !slices.Contains(have, "NEON") {
		f.OK = false
		f.State = strings.TrimPrefix(f.State+", no AVX2: plain Go kernels, slow", ", ")
		f.Do = "use an x86-64 processor of 2015 or later; a virtual machine has to pass its host's through"
	}
	return f
}

// kernelsFor says which kernels models run on: the best for this processor, unless SLUICE_CPU names others.
func kernelsFor(forced string) Finding {
	f := Finding{What: "kernels", OK: forced == ""}
	if !f.OK {
		f.State, f.Do = "SLUICE_CPU="+env.Printable(forced)+" forces them", "unset SLUICE_CPU for the fastest"
	}
	device, err := cpu.New(1, forced)
	if err != nil {
		f.State = "SLUICE_CPU: " + err.Error()
		return f
	}
	defer device.Close()
	if f.OK {
		f.State = strings.TrimPrefix(device.Name(), "cpu ")
	}
	if set, err := kernels.Best(forced); err == nil && set.Blocks() != set.Name {
		f.State += fmt.Sprintf("; blocks of integers are multiplied by %s's: they need VNNI to be faster", set.Blocks())
	}
	return f
}

// memory reports what the machine has and what may be used now, which in a container is less.
func memory(root fs.FS) Finding {
	f := Finding{What: "memory", OK: true}
	total, known := system.InstalledMemory()
	available, _ := system.AvailableMemory()
	if !known {
		total, available = meminfo(root, "MemTotal"), meminfo(root, "MemAvailable")
	}
	if total == 0 {
		f.State = "unknown: this system does not say"
		return f
	}
	f.State = fmt.Sprintf("%s, %s available", env.BinarySize(total), env.BinarySize(available))
	if limit := groupLimit(root); limit > 0 && limit < total {
		f.State += fmt.Sprintf(", limited to %s by the control group", env.BinarySize(limit))
		available = min(available, limit)
	}
	if available < 1<<30 {
		f.OK, f.Do = false, "close other programs, or use a model whose file is smaller than what is available"
	}
	return f
}

// meminfo reads one line of /proc/meminfo, in bytes; 0 if there is none.
func meminfo(root fs.FS, key string) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == key+":" {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// groupLimit is the memory limit of the control group that a container sees as its root, in bytes; 0 if there
// is none (the file then says "max").
func groupLimit(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "sys/fs/cgroup/memory.max")
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

func hugePages(root fs.FS) Finding {
	const setting = "/sys/kernel/mm/transparent_hugepage/enabled"
	f := Finding{What: "huge pages"}
	text, err := fs.ReadFile(root, setting[1:])
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	switch {
	case err != nil:
		f.State, f.OK = "unknown: this system does not say", true
	case mode == "always" || mode == "madvise":
		f.State, f.OK = "given on request ("+mode+")", true
	default:
		f.State = "switched off: computing waits more often for addresses"
		f.Do = "echo madvise | sudo tee " + setting
	}
	return f
}

func directReads() Finding {
	_, detail, advice := uring.Probe()
	return Finding{What: "io_uring", State: detail, OK: advice == "", Do: advice}
}

// lockedMemory locks a few slabs of memory, as loading a model does.
func lockedMemory() Finding {
	const slabs, size = 12, 1 << 20
	wanted, limit := env.BinarySize(slabs*size), lockLimit()
	f := Finding{What: "locked memory", OK: true,
		State: fmt.Sprintf("%s can be locked (limit without CAP_IPC_LOCK: %s)", wanted, limit)}
	arena, err := pin.New(slabs, size)
	if err == nil {
		err = arena.Unlocked
		defer arena.Close()
	}
	if err != nil {
		f.OK = false
		f.State = fmt.Sprintf("%s cannot be locked (limit: %s): %v", wanted, limit, err)
		f.Do = system.ToLockMore
	}
	return f
}

// lockLimit shows the limit of memory that this process may lock.
func lockLimit() string {
	switch n, err := system.MostLocked(); {
	case err != nil:
		return fmt.Sprintf("unknown (%v)", err)
	case n == math.MaxUint64:
		return "none"
	default:
		return env.BinarySize(int64(n))
	}
}

func freeDisk(dir string) Finding {
	f := Finding{What: "disk", OK: true}
	free, err := system.Room(dir)
	if err != nil {
		f.State = fmt.Sprintf("unknown: %v", err)
		return f
	}
	f.State = env.BinarySize(free) + " free in this folder"
	if free < 10<<30 {
		f.OK, f.Do = false, "a model of 8 B parameters takes 5 GiB: keep models on another disk, or make room"
	}
	return f
}

// cards has a finding for each CUDA card. A machine without one is fine, too: the finding says what a card would need.
func cards() (all []Finding) {
	list, err := cuda.List(cuda.Options{})
	if err != nil {
		return []Finding{{What: "CUDA", State: "none: " + err.Error(), OK: true, Absent: true}}
	}
	if len(list) == 0 {
		return []Finding{{What: "CUDA", State: "none that NVIDIA's driver knows", OK: true, Absent: true}}
	}
	for i, d := range list {
		f := Finding{What: "CUDA", OK: d.Missing == nil}
		f.State = fmt.Sprintf("cuda:%d %s, %s, %s free, compute capability %d.%d, %d multiprocessors, driver of %s", i,
			env.Printable(d.Name), env.BinarySize(d.Memory), env.BinarySize(d.Free), d.Major, d.Minor, d.Processors,
			env.Printable(d.Driver))
		if d.Missing != nil {
			f.State += ": " + d.Missing.Error()
			f.Do = "compute with --device vulkan, or with --device cpu"
		}
		all = append(all, f)
	}
	return all
}

// gpus has a finding for each Vulkan device. A machine without one is fine, too: the finding says what it would need.
func gpus(e *env.Env) (all []Finding) {
	without := devices.FromEnvironment(e.Lookup).Without
	list, err := vulkan.List(without...)
	if err != nil {
		return []Finding{{What: "GPU", State: "none: " + err.Error(), OK: true, Absent: true}}
	}
	if len(list) == 0 {
		return []Finding{{What: "GPU", State: "none that the Vulkan loader knows", OK: true, Absent: true}}
	}
	for i, d := range list {
		f := Finding{What: "GPU", OK: d.Missing == nil}
		f.State = fmt.Sprintf("vulkan:%d %s (%s), %s, %s free, Vulkan %s, %s, subgroups of %d, %s shared", i,
			env.Printable(d.Name), d.Kind, env.BinarySize(d.Memory), env.BinarySize(d.Free), d.API,
			env.Printable(d.Driver), d.Subgroup, env.BinarySize(d.Shared))
		if len(d.Has) > 0 {
			f.State += ", " + strings.Join(d.Has, ", ")
		}
		if len(d.Lacks) > 0 {
			f.State += "; without " + strings.Join(d.Lacks, ", ")
		}
		if len(without) > 0 {
			f.State += "; " + devices.WithoutVariable + "=" + env.Printable(strings.Join(without, ","))
		}
		if d.Missing != nil {
			f.State += ": " + d.Missing.Error()
			f.Do = "install a newer driver for this card, or compute with --device cpu"
		} else if !d.Auto {
			f.State += "; --device auto leaves it alone"
		}
		all = append(all, f)
	}
	return all
}

// ofSpeeds shows measured speeds.
func ofSpeeds(s *compute.Speeds) []Finding {
	disk := Finding{What: "disk reads", OK: s.Direct,
		State: fmt.Sprintf("%s past the page cache, %s", env.PerSecond(s.Disk), s.FileSystem)}
	if !s.Direct {
		disk.State = fmt.Sprintf("%s through the page cache, %s", env.PerSecond(s.Disk), s.FileSystem)
		disk.Do = "keep models on a file system with direct reads, such as ext4, xfs or btrfs on a drive of this machine"
	}
	multiply := Finding{What: "multiplying", OK: true, State: "unknown with these instructions"}
	if s.Multiply > 0 {
		multiply.State = fmt.Sprintf("%.2f T integer operations a second", s.Multiply/1e12)
	}
	all := []Finding{disk, {What: "memory reads", OK: true, State: env.PerSecond(s.Memory)}, multiply}
	if s.Busy {
		all = append(all, Finding{What: "processors", State: "other programs had half of them or more during the last minute",
			Do: "measure again when they have ended: plans expect too little until then"})
	}
	return all
}
