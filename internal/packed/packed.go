// Package packed reads tensors that other tools quantised: FP8 with scales, NVFP4 and MXFP4, GPTQ, AWQ,
// compressed-tensors, MLX. Of each it knows which tensors of a folder belong together, what tensor of the model they
// are, and that tensor's values.
//
// There is one file for each format. A format finds its tensors by names, types and shapes, before anything is
// read; what does not fit is an error. Values come out as float32, a run at a time, computed as the format's own
// library does: codes less their zeros times their scale, so that nothing is rounded but the last result.
package packed

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Tensor is a tensor of a model, whose values are made of several tensors of the folder.
type Tensor struct {
	element.Tensor // as the model has it, of type F32

	// Blocks is the type of GGUF files whose blocks the tensor's are but for the order of their bits, where there is one:
	// then its values can be written as such without a change.
	Blocks quant.Type

	parts  []element.Tensor
	bind   func(parts [][]byte) (Values, error)
	blocks func(parts [][]byte, w io.Writer) error // writes them
}

// Values sets dst to the values of a tensor from number at on. They must be there.
type Values func(dst []float32, at int64)

// Bytes calls use with the bytes of a tensor of the folder; they are valid until use returns.
type Bytes func(name string, use func(data []byte) error) error

// Read calls use with a reader of the tensor's values, which is valid until use returns.
func (t *Tensor) Read(bytes Bytes, use func(Values) error) error {
	return t.read(bytes, make([][]byte, 0, len(t.parts)), use)
}

// WriteBlocks writes the tensor as blocks of the type Blocks.
func (t *Tensor) WriteBlocks(bytes Bytes, w io.Writer) error {
	return t.open(bytes, make([][]byte, 0, len(t.parts)), func(open [][]byte) error { return t.blocks(open, w) })
}

func (t *Tensor) read(bytes Bytes, open [][]byte, use func(Values) error) error {
	return t.open(bytes, open, func(open [][]byte) error {
		reader, err := t.bind(open)
		if err != nil {
			return fmt.Errorf("tensor %.120q: %w", t.Name, err)
		}
		return use(reader)
	})
}

// open opens the parts that come behind those that are open.
func (t *Tensor) open(bytes Bytes, open [][]byte, use func(open [][]byte) error) error {
	if len(open) == len(t.parts) {
		return use(open)
	}
	part := &t.parts[len(open)]
	return bytes(part.Name, func(data []byte) error {
		n, err := part.Count()
		if err != nil {
			return err
		}
		if want := n * int64(part.Type.Size()); int64(len(data)) != want {
			return fmt.Errorf("tensor %.120q: has %d bytes, and %s of shape %v takes %d: the file is damaged, download it again",
				part.Name, len(data), part.Type, part.Shape, want)
		}
		return t.open(bytes, append(open, data), use)
	})
}

// Contents are the tensors of a model.
type Contents struct {
	Tensors []element.Tensor // all of them, in the order of the folder
	Made    map[string]*Tensor
}

// Unpack says what tensors a model has whose folder has others. mlx and method are what config.json says as
// quantization and quantization_config, JSON or nothing.
func Unpack(mlx, method []byte, folder []element.Tensor) (*Contents, error) {
	f, err := formatOf(mlx, method)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	u := &unpacker{byName: make(map[string]element.Tensor, len(folder)), used: map[string]bool{}}
	for _, t := range folder {
		u.byName[t.Name] = t
	}
	c := &Contents{Made: map[string]*Tensor{}}
	begun := map[string]*Tensor{} // by the part that names them
	for _, t := range folder {
		made, err := f.make(u, t)
		if err == nil && made != nil {
			err = c.add(made)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %.120q: %w", t.Name, err)
		}
		if made != nil {
			begun[t.Name] = made
		}
	}
	for _, t := range folder {
		made := begun[t.Name]
		switch {
		case made != nil:
			c.Tensors = append(c.Tensors, made.Tensor)
		case u.used[t.Name] || f.activations && ofActivations(t.Name):
		case f.belongs(t.Name):
			return nil, fmt.Errorf("tensor %.120q: belongs to a weight that is not there, or is none of %s: "+
				"is the folder complete?", t.Name, f.name)
		case c.Made[t.Name] != nil:
			return nil, fmt.Errorf("tensor %.120q: is there, and made of others: the files do not belong together", t.Name)
		default:
			c.Tensors = append(c.Tensors, t)
		}
	}
	return c, nil
}

// add notes a tensor that is made of others. It checks its size.
func (c *Contents) add(t *Tensor) error {
	n, err := t.Count()
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("shape is %v: want values", t.Shape)
	case c.Made[t.Name] != nil:
		return fmt.Errorf("becomes %.120q, as another does: the files do not belong together", t.Name)
	}
	c.Made[t.Name] = t
	return nil
}

// format is a way of packing.
type format struct {
	name string
	// make returns the tensor that t is the first part of; nil: t is none of the format.
	make        func(u *unpacker, t element.Tensor) (*Tensor, error)
	ends        []string // of names of parts that no tensor of a model has
	activations bool     // there may be scales of activations, which weights do not need
}

func (f *format) belongs(name string) bool {
	return slices.ContainsFunc(f.ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

// ofActivations says whether a name is that of a scale of activations or of the cache, both of which are computed here
// in their own types.
func ofActivations(name string) bool {
	for _, end := range []string{".input_scale", ".activation_scale", ".output_scale", ".input_zero_point",
		".input_global_scale", ".qscale_act", ".k_scale", ".v_scale", ".kv_scale", ".k_zero_point", ".v_zero_point"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// unpacker is what is known while tensors are put together.
type unpacker struct {
	byName map[string]element.Tensor
	used   map[string]bool
}

// find returns a part that must be there, of one of some types.
func (u *unpacker) find(name string, types ...element.Type) (element.Tensor, error) {
	t, ok, err := u.look(name, types...)
	if err == nil && !ok {
		err = fmt.Errorf("its %s is missing: is the folder complete?", last(name))
	}
	return t, err
}

// look returns a part that may be there.
func (u *unpacker) look(name string, types ...element.Type) (t element.Tensor, ok bool, err error) {
	if t, ok = u.byName[name]; !ok {
		return t, false, nil
	}
	if !slices.Contains(types, t.Type) {
		return t, true, fmt.Errorf("its %s is of type %s, want %v", last(name), t.Type, types)
	}
	u.used[name] = true
	return t, true, nil
}

// last is the last part of a name.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// shaped checks the shape of a part.
func shaped(t element.Tensor, want ...int) error {
	if !slices.Equal(t.Shape, want) {
		return fmt.Errorf("its %s has shape %v, want %v", last(t.Name), t.Shape, want)
	}
	return nil
}

// matrix checks that a tensor has two dimensions, none of which is 0.
func matrix(t element.Tensor) error {
	if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 || t.Shape[0] > mostSide || t.Shape[1] > mostSide {
		return fmt.Errorf("shape is %v, want rows and columns", t.Shape)
	}
	return nil
}

const mostSide = 1 << 28 // of a matrix, so that products of sides and bits fit an int64

// values describes a tensor of the model.
func described(name string, shape ...int) element.Tensor {
	return element.Tensor{Name: name, Type: element.F32, Shape: shape}
}

// rows makes a reader of what reads a part of one row.
func rows(width int, use func(dst []float32, row, column int64)) Values {
	w := int64(width)
	return func(dst []float32, at int64) {
		for len(dst) > 0 {
			row, column := at/w, at%w
			n := min(int64(len(dst)), w-column)
			use(dst[:n], row, column)
			dst, at = dst[n:], at+n
		}
	}
}

// runs calls use for each part of a row that lies in one group of columns.
func runs(dst []float32, column, group int64, use func(dst []float32, column, group int64)) {
	for len(dst) > 0 {
		n := min(int64(len(dst)), group-column%group)
		use(dst[:n], column, column/group)
		dst, column = dst[n:], column+n
	}
}
