package predict

// remembered is how many tokens are remembered: those whose ids are equal modulo it share a place.
const remembered = 4096

// times is how many choices are remembered of each token: the last one and the one before.
const times = 2

// memory is what layers chose for tokens the last times.
type memory struct {
	tokens [remembered]int32 // plus one; 0: none
	from   []int             // by layer: where its choices are in an entry
	size   int               // of an entry
	used   []int             // by layer
	chosen []uint16          // [remembered][layers][times][used]: experts plus one; 0: none
}

func newMemory(layers []Layer) memory {
	m := memory{}
	for _, l := range layers {
		m.from, m.used = append(m.from, m.size), append(m.used, l.Used)
		m.size += times * l.Used
	}
	m.chosen = make([]uint16, remembered*m.size)
	return m
}

func (m *memory) at(token int32, l, time int) []uint16 {
	return m.chosen[int(token)%remembered*m.size+m.from[l]+time*m.used[l]:][:m.used[l]]
}

// recall is what a layer chose for a token at the last time (0) or the time before (1): experts plus one.
func (m *memory) recall(token int32, l, time int) []uint16 {
	if token < 0 || m.tokens[int(token)%remembered] != token+1 {
		return nil
	}
	x := m.at(token, l, time)
	for i, e := range x {
		if e == 0 {
			return x[:i]
		}
	}
	return x
}

// keep remembers what a layer chose for a token: experts, -1 where there are fewer.
func (m *memory) keep(token int32, l int, experts []int32) {
	if token < 0 {
		return
	}
	if place := int(token) % remembered; m.tokens[place] != token+1 {
		m.tokens[place] = token + 1
		clear(m.chosen[place*m.size:][:m.size])
	}
	now := m.at(token, l, 0)
	copy(m.at(token, l, 1), now)
	clear(now)
	for i, e := range experts {
		if e < 0 {
			break
		}
		now[i] = uint16(e) + 1
	}
}
