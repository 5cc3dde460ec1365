package main

import (
	"errors"
	"sync"

	"github.com/sluice-ai/sluice"
)

// models are the models that are open, by the numbers that C has of them. A number is given once.
type models struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*sluice.Model
}

// add returns a number for a model.
func (m *models) add(one *sluice.Model) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		m.open = map[uint64]*sluice.Model{}
	}
	m.last++
	m.open[m.last] = one
	return m.last
}

// find returns the model of a number.
func (m *models) find(number uint64) (*sluice.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.open[number]; one != nil {
		return one, nil
	}
	return nil, errors.New("there is no such model: want one that sluice_open returned and that was not closed")
}

// take returns the model of a number, which no longer has one.
func (m *models) take(number uint64) (*sluice.Model, error) {
	one, err := m.find(number)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, number)
	return one, err
}
