package token

import "fmt"

// mostApart is how many tokens more one of two vocabularies that are alike may have: files of a family are padded to
// different sizes.
const mostApart = 128

// Alike returns an error, which says where, unless both vocabularies number the same tokens in the same way. One may
// have a few tokens more, behind those of the other.
func (v *Vocab) Alike(other *Vocab) error {
	a, b := v.Size(), other.Size()
	if max(a, b)-min(a, b) > mostApart {
		return fmt.Errorf("one has %d tokens, the other %d: they may differ by %d", a, b, mostApart)
	}
	for id := range min(a, b) {
		if v.text[id] != other.text[id] {
			return fmt.Errorf("token %d is %q in one and %q in the other", id, v.text[id], other.text[id])
		}
	}
	for _, role := range []struct {
		name      string
		one, that ID
	}{{"BOS", v.special.bos, other.special.bos}, {"EOS", v.special.eos, other.special.eos}} {
		if role.one != role.that {
			return fmt.Errorf("%s is token %d in one and %d in the other", role.name, role.one, role.that)
		}
	}
	return nil
}
