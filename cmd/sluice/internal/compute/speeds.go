package compute

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/probe"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Speeds are this machine's measured speeds, with files of one file system. Their JSON names are part of the interface,
// and of the file that they are kept in.
type Speeds struct {
	Machine    string    `json:"machine"`
	FileSystem string    `json:"file_system"`
	Measured   time.Time `json:"measured"`
	Disk       float64   `json:"disk_bytes_per_second"`
	Direct     bool      `json:"disk_past_page_cache"`
	Memory     float64   `json:"memory_bytes_per_second"`
	Multiply   float64   `json:"integer_operations_per_second"`
	Attend     float64   `json:"float_operations_per_second"` // 0: it was measured by an older program
	Gate       float64   `json:"gated_values_per_second"`
	Busy       bool      `json:"measured_while_busy,omitempty"` // other programs had the processors: it is too low

	Devices map[string]deviceSpeeds `json:"devices,omitempty"` // by name; devices that have memory of their own
}

// deviceSpeeds are the measured speeds of one device.
type deviceSpeeds struct {
	Bus    float64 `json:"bus_bytes_per_second"`
	Memory float64 `json:"memory_bytes_per_second"`
	Copy   float64 `json:"seconds_of_a_copy"` // fixed, besides its bytes; 0: it was measured by an older program
	Launch float64 `json:"seconds_of_a_launch"`
	Turn   float64 `json:"seconds_of_a_turn"`
}

const (
	diskTime   = 1500 * time.Millisecond // of measuring
	probeBytes = 256 << 20               // of a temporary file
	mostSpeeds = 64                      // that are kept
)

// Planned converts the speeds to those that a plan for a device uses.
func (s *Speeds) Planned(d backend.Device) place.Speeds {
	processor := place.Speed{Memory: s.Memory, Multiply: s.Multiply, Attend: s.Attend, Gate: s.Gate}
	all := place.Speeds{Disk: s.Disk, Devices: []place.Speed{processor}}
	for _, card := range cards(d) {
		x := s.Devices[card.Name]
		all.Devices = append(all.Devices,
			place.Speed{Bus: x.Bus, Memory: x.Memory, Copy: x.Copy, Launch: x.Launch, Turn: x.Turn})
	}
	return all
}

// cards lists the devices in d that have memory of their own, in the order of plans.
func cards(d backend.Device) []backend.Traits {
	t := d.Traits()
	all := t.Devices
	if all == nil {
		t.Name = d.Name()
		all = []backend.Traits{t}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t backend.Traits) bool { return t.Memory != backend.OwnMemory })
}

// SpeedsOf returns a function that finds the speeds for a plan of a file on a device.
func SpeedsOf(e *env.Env, file *gguf.File, d backend.Device) func() (place.Speeds, error) {
	return func() (place.Speeds, error) {
		s, err := Recall(e, file.Part(0), d)
		return s.Planned(d), err
	}
}

// Recall returns speeds that were measured before, or measures and keeps them. Copies of the file on other file systems
// are read at the same time as the file: the speeds of their disks are added.
func Recall(e *env.Env, file source.Source, d backend.Device) (s Speeds, err error) {
	if s, err = recallOne(e, file, d); err != nil {
		return s, err
	}
	seen := []string{fileSystem(e.Root, file.Path)}
	for _, copied := range file.Copies {
		if where := fileSystem(e.Root, copied.Path); !slices.Contains(seen, where) {
			other, err := recallOne(e, copied, d)
			if err != nil {
				return s, err
			}
			s.Disk += other.Disk
			seen = append(seen, where)
		}
	}
	return s, nil
}

// RecallAt returns the speeds of this machine. That of the disk is known if it was measured before on the file system
// of a path; it is not measured for want of a file.
func RecallAt(e *env.Env, path string, d backend.Device) (Speeds, error) {
	wanted := Unmeasured(e, path)
	for _, k := range kept(e) {
		if k.Machine == wanted.Machine && k.FileSystem == wanted.FileSystem && k.Attend > 0 {
			return recallOne(e, source.Source{Path: path}, d)
		}
	}
	return recallOne(e, source.Source{}, d)
}

// recallOne is Recall for one copy. If results cannot be written, it measures each time. What was measured on a busy
// machine is measured again on one that is not.
func recallOne(e *env.Env, file source.Source, d backend.Device) (s Speeds, err error) {
	return recallBy(e, file.Path, d, func() (Speeds, error) { return MeasureSpeeds(e, file, file.Path) })
}

// RecallBeside is Recall for a file that is not read, since it is a hole: another one in its folder is.
func RecallBeside(e *env.Env, path string, d backend.Device) (s Speeds, err error) {
	return recallBy(e, path, d, func() (Speeds, error) { return MeasureHere(e, filepath.Dir(path)) })
}

func recallBy(e *env.Env, path string, d backend.Device, measure func() (Speeds, error)) (s Speeds, err error) {
	known, wanted := false, Unmeasured(e, path)
	for _, k := range kept(e) {
		if k.Machine == wanted.Machine && k.FileSystem == wanted.FileSystem {
			s, known = k, k.Attend > 0 && (!k.Busy || busy(e.Root))
		}
	}
	if devices := s.Devices; !known {
		if s, err = measure(); err != nil {
			return s, err
		}
		s.Devices = devices // they stay as they were measured
	}
	for _, card := range cards(d) {
		if s.Devices[card.Name].Copy != 0 {
			continue // or it is another one of the same name
		}
		var rates backend.Rates // 0 for a device that cannot be measured
		if card.Meter != nil {
			if rates, err = card.Meter.Rates(); err != nil {
				return s, fmt.Errorf("measuring %s: %w", card.Name, err)
			}
		}
		all := map[string]deviceSpeeds{}
		maps.Copy(all, s.Devices)
		all[card.Name] = deviceSpeeds(rates)
		s.Devices, known = all, false
	}
	if !known {
		_ = Keep(e, s) // it is known now
	}
	return s, nil
}

// Unmeasured returns Speeds with only the names of this machine and of the file system of a path.
func Unmeasured(e *env.Env, path string) Speeds {
	return Speeds{Machine: machineName(), FileSystem: fileSystem(e.Root, path)}
}

// MeasureSpeeds measures, which takes a few seconds. Without a file the disk is not measured; beside is a path on the
// same file system, by which that is named.
func MeasureSpeeds(e *env.Env, file source.Source, beside string) (s Speeds, err error) {
	s = Unmeasured(e, beside)
	s.Measured, s.Busy = e.Now().UTC(), busy(e.Root)
	if file.Path != "" {
		rate, err := uring.Measure(file, diskTime)
		if err != nil {
			return s, fmt.Errorf("measuring the disk: %w", err)
		}
		s.Disk, s.Direct = rate.Bytes, rate.Direct
	}
	threads := runtime.NumCPU()
	read, err := probe.Read(threads)
	if err != nil {
		return s, fmt.Errorf("measuring the memory: %w", err)
	}
	s.Memory = median(read)
	forced, _ := e.Lookup("SLUICE_CPU")
	set, err := kernels.Best(forced)
	if err != nil {
		return s, fmt.Errorf("SLUICE_CPU: %w", err)
	}
	s.Multiply = median(probe.Multiply(set.Name, threads))
	s.Attend, s.Gate = median(probe.Attend(set, threads)), median(probe.Gate(set, threads))
	return s, nil
}

// busy says whether other programs kept at least half of the processors at work during the last minute, if the system
// knows.
func busy(root fs.FS) bool {
	text, err := fs.ReadFile(root, "proc/loadavg")
	if err != nil {
		return false
	}
	var load float64
	_, err = fmt.Sscan(string(text), &load)
	return err == nil && 2*load > float64(runtime.NumCPU())
}

// median is 0 for an empty list.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// MeasureHere measures with a temporary file in a folder; the file is removed in any case.
func MeasureHere(e *env.Env, folder string) (s Speeds, err error) {
	f, err := safefile.Scratch(filepath.Join(folder, "probe"))
	if err != nil {
		return s, env.OnFile(folder, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block, random := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
	for written := 0; written < probeBytes && err == nil; written += len(block) {
		_, _ = random.Read(block) // it cannot fail; drives may store zeros without writing them
		_, err = f.Write(block)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return s, env.OnFile(folder, err)
	}
	file := source.Source{Name: "a file in " + folder, Path: f.Meanwhile(), Size: probeBytes}
	return MeasureSpeeds(e, file, folder+"/.")
}

// machineName distinguishes machines that share a user's home folder.
func machineName() string {
	name, _ := os.Hostname()
	return fmt.Sprintf("%s, %s, %s", cmp.Or(name, "unknown"), ProcessorName(&cpuid.CPU), env.Count(runtime.NumCPU(), "thread"))
}

// fileSystem names the file system that a path is on, as the kernel does, so that the name survives a restart. If the
// kernel does not say, it is the file's folder.
func fileSystem(root fs.FS, path string) string {
	if path == "" {
		return "none"
	}
	major, minor, err := system.DeviceOf(path)
	if err == nil {
		text, _ := fs.ReadFile(root, "proc/self/mountinfo")
		for line := range strings.Lines(string(text)) {
			mount, what, ok := strings.Cut(line, " - ")
			fields, kind := strings.Fields(mount), strings.Fields(what)
			if ok && len(fields) > 4 && len(kind) > 1 && fields[2] == fmt.Sprintf("%d:%d", major, minor) {
				return kind[0] + " " + kind[1]
			}
		}
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return filepath.Dir(path)
	}
	return folder
}

// cacheFolder is the folder for what was found out about this machine and its models.
func cacheFolder(e *env.Env) (string, error) {
	folder, _ := e.Lookup("XDG_CACHE_HOME")
	if folder == "" {
		var err error
		if folder, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "sluice"), nil
}

// speedsFile is the path of the file with kept measurements.
func speedsFile(e *env.Env) (string, error) {
	folder, err := cacheFolder(e)
	return filepath.Join(folder, "speeds.json"), err
}

// recall reads what is kept as JSON in a file into x, and says whether it could.
func recall(path string, x any) bool {
	f, _, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := safefile.ReadAll(f, env.MostDescription)
	return err == nil && json.Unmarshal(text, x) == nil
}

// kept lists kept measurements. Unreadable ones count as missing.
func kept(e *env.Env) (list []Speeds) {
	if path, err := speedsFile(e); err != nil || !recall(path, &list) {
		return nil
	}
	return list
}

// Keep stores a measurement, in place of an older one of the same machine and file system.
func Keep(e *env.Env, s Speeds) error {
	path, err := speedsFile(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return env.OnFile(path, err)
	}
	list := slices.DeleteFunc(kept(e), func(old Speeds) bool {
		return old.Machine == s.Machine && old.FileSystem == s.FileSystem
	})
	list = append(list, s)
	list = list[max(0, len(list)-mostSpeeds):]
	var text bytes.Buffer
	if err := env.PrintJSON(&text, list); err != nil {
		return err
	}
	if err := safefile.Write(path, text.Bytes(), 0o600, true); err != nil {
		return env.OnFile(path, err)
	}
	return nil
}

// ProcessorName is the brand name of the processor, else its architecture.
func ProcessorName(c *cpuid.CPUInfo) string {
	return cmp.Or(strings.Join(strings.Fields(c.BrandName), " "), runtime.GOARCH)
}
