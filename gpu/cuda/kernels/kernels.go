// Package kernels has CUDA's kernels: CUDA C++ in *.cu and lib, compiled by gen to PTX, which a card's driver compiles
// for the card. `make gen` compiles what has changed.
//
// Every source says at its top what a block owns, what it needs, and in which order it adds; lib/device.cuh says what
// it is written with. What runs them is gpu/cuda. A module is known by its name, which its source lists as a variant.
package kernels

//go:generate go run -C gen . -o ..

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed *.ptx.zst
var code embed.FS

const packed = ".ptx.zst"

// decoder unpacks modules, several at once.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil) })

// Module is a compiled source.
type Module struct {
	PTX string
	// Args is the size of the arguments of each of its kernels, by name.
	Args map[string]int
}

// bases are modules much like others, of which only what differs is packed.
var bases = map[string]string{
	"matvec_f32": "matvec_f16", "matvec_bf16": "matvec_f16", "matvec_split": "matvec_split_low",
	"matmul_q4_0": "matmul_q8_0", "matmul_split": "matmul_q8_0", "matmul_half_bf16": "matmul_half_f16",
	"attend_bytes_256": "attend_bytes_128", "attend_80_few": "attend_96_few",
}

// Base is the module that has most of a module's text, and has no base itself; empty: there is none.
func Base(name string) string { return bases[name] }

// Unpack returns the text of a packed module, given that of its base.
func Unpack(b []byte, base string) (string, error) {
	d, err := decoder()
	if base != "" {
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderDictRaw(1, []byte(base)))
	}
	if err != nil {
		return "", err
	}
	if base != "" {
		defer d.Close()
	}
	b, err = d.DecodeAll(b, nil)
	return string(b), err
}

// Names lists all modules.
func Names() (names []string) {
	files, err := code.ReadDir(".")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), packed))
	}
	return slices.Clip(names)
}

// entry is a kernel with its one argument, a structure.
var entry = regexp.MustCompile(`\.visible \.entry (\w+)\(\s*\.param \.align \d+ \.b8 \w+\[(\d+)\]\s*\)`)

// Load unpacks a module.
func Load(name string) (*Module, error) {
	text, err := load(name)
	if err != nil {
		return nil, err
	}
	m := &Module{PTX: text, Args: map[string]int{}}
	for _, e := range entry.FindAllStringSubmatch(m.PTX, -1) {
		size, err := strconv.Atoi(e[2])
		if err != nil {
			return nil, err
		}
		m.Args[e[1]] = size
	}
	return m, nil
}

func load(name string) (text string, err error) {
	b, err := code.ReadFile(name + packed)
	if err != nil {
		return "", fmt.Errorf("there is no module of kernels called %s", name)
	}
	base := Base(name)
	if base != "" {
		if base, err = load(base); err != nil {
			return "", err
		}
	}
	return Unpack(b, base)
}
