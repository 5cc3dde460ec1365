package torch

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/element"
)

// object runs an instruction that names, calls or completes an object.
func (m *machine) object(op byte) error {
	switch op {
	case 'c':
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		return m.name(module, name)
	case 0x93: // STACK_GLOBAL
		names, err := m.popN(2)
		if err != nil {
			return err
		}
		module, ok1 := names[0].(string)
		name, ok2 := names[1].(string)
		if !ok1 || !ok2 {
			return errShort
		}
		return m.name(module, name)
	case 'Q':
		return m.persistent()
	case 'R':
		return m.call()
	}
	// BUILD sets attributes, such as the _metadata of a state_dict, which are not used.
	_, err := m.pop()
	if err != nil {
		return err
	}
	_, err = m.top()
	return err
}

// name pushes a global that tensors need. Any other is an error.
func (m *machine) name(module, name string) error {
	g := global(module + "." + name)
	_, ok := storages(g)
	if ok || g == rebuildTensor || g == rebuildParameter || g == orderedDict {
		m.push(g)
		return nil
	}
	return fmt.Errorf("uses %.120q, which is none of the names that tensors need: this file runs a program when Python "+
		"opens it; if you trust whoever made it, save the model again, as safetensors", string(g))
}

// persistent turns ("storage", type, key, location, elements) into a storage.
func (m *machine) persistent() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	id, _ := v.(tuple)
	if len(id) != 5 || id[0] != "storage" {
		return errShort
	}
	name, ok1 := id[1].(global)
	kind, ok2 := storages(name)
	key, ok3 := id[2].(string)
	if !ok1 || !ok2 || !ok3 {
		return errShort
	}
	m.push(storage{kind, key})
	return nil
}

// call runs one of the functions that a pickle may call.
func (m *machine) call() error {
	both, err := m.popN(2)
	if err != nil {
		return err
	}
	function, ok := both[0].(global)
	arguments, ok2 := both[1].(tuple)
	if !ok || !ok2 {
		return errShort
	}
	switch {
	case function == orderedDict && len(arguments) == 0:
		m.push(&dict{})
		return nil
	case function == rebuildParameter && len(arguments) >= 1:
		t, ok := arguments[0].(*tensor)
		if !ok {
			return errShort
		}
		m.push(t)
		return nil
	case function == rebuildTensor && len(arguments) >= 4:
		return m.rebuild(arguments)
	}
	return fmt.Errorf("calls %.120q with what it does not take here", string(function))
}

// rebuild makes a tensor of (storage, offset, shape, strides, …).
func (m *machine) rebuild(arguments tuple) error {
	s, ok1 := arguments[0].(storage)
	offset, ok2 := arguments[1].(int64)
	shape, ok3 := ints(arguments[2])
	strides, ok4 := ints(arguments[3])
	if !ok1 || !ok2 || !ok3 || !ok4 || s.kind == element.Type(0) {
		return errShort
	}
	m.push(&tensor{storage: s, offset: offset, shape: shape, strides: strides})
	return nil
}

func ints(v any) ([]int, bool) {
	items, ok := v.(tuple)
	var out []int
	for _, item := range items {
		n, is := item.(int64)
		if ok = ok && is && int64(int(n)) == n; ok {
			out = append(out, int(n))
		}
	}
	return out, ok
}
