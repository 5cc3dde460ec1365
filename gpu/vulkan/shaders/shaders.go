// Package shaders has the kernels' shaders: GLSL in *.comp and lib, compiled to SPIR-V by gen, with Go types for what
// a caller must pass, read from the compiled modules. `make gen` compiles what has changed.
//
// Every shader says at its top what a workgroup owns, what it needs, and in which order it adds. What runs them is
// gpu/vulkan.
package shaders

//go:generate go run -C gen . -o ..

import (
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// decoder unpacks modules, several at once.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil) })

// Code is a module's SPIR-V, unpacked anew: some tens of microseconds, against milliseconds that a driver compiles it.
func (m Module) Code() []byte {
	packed, err := code.ReadFile(m.String() + ".spv.zst")
	if err != nil {
		panic(err) // the generator embeds all
	}
	var b []byte
	d, err := decoder()
	if err == nil {
		b, err = d.DecodeAll(packed, nil)
	}
	if err != nil {
		panic(err) // what is embedded is what was packed, which TestCode reads
	}
	return b
}

func (m Module) String() string {
	if m >= modules {
		return "module " + strconv.Itoa(int(m))
	}
	return names[m]
}
