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
	b, err := code.ReadFile(name + packed)
	if err != nil {
		return nil, fmt.Errorf("there is no module of kernels called %s", name)
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	if b, err = d.DecodeAll(b, nil); err != nil {
		return nil, err
	}
	m := &Module{PTX: string(b), Args: map[string]int{}}
	for _, e := range entry.FindAllStringSubmatch(m.PTX, -1) {
		size, err := strconv.Atoi(e[2])
		if err != nil {
			return nil, err
		}
		m.Args[e[1]] = size
	}
	return m, nil
}
