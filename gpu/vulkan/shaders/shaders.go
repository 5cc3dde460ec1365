// Package shaders has the kernels' shaders: GLSL in *.comp and lib, compiled to SPIR-V by gen, with Go types for what
// a caller must pass, read from the compiled modules. `make gen` compiles what has changed.
//
// Every shader says at its top what a workgroup owns, what it needs, and in which order it adds. What runs them is
// gpu/vulkan.
package shaders

//go:generate go run -C gen . -o ..

import "strconv"

// Code is a module's SPIR-V.
func (m Module) Code() []byte {
	b, err := code.ReadFile(m.String() + ".spv")
	if err != nil {
		panic(err) // the generator embeds all
	}
	return b
}

func (m Module) String() string {
	if m >= modules {
		return "module " + strconv.Itoa(int(m))
	}
	return names[m]
}
