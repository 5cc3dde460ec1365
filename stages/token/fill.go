package token

// Snippet is a text from beside the one that is to be filled in, such as another file of a project.
type Snippet struct{ Name, Text string }

// FillsIn says whether the vocabulary has the tokens that mark a gap in a text: its model was trained to fill it in.
func (v *Vocab) FillsIn() bool {
	s := &v.special
	return s.fimPrefix != none && s.fimSuffix != none && s.fimMiddle != none
}

// Fill encodes a text with a gap, for a vocabulary that FillsIn: beside it stand snippets, then come what is before the
// gap, what is after it, and the token that the model goes on from. All of them are plain text, whatever o says. The
// order is that of llama.cpp's server; snippets are files of a project where there are tokens for those.
func (v *Vocab) Fill(beside []Snippet, before, after string, o Options) ([]ID, error) {
	f := filler{v: v, o: Options{Most: o.Most, Stop: o.Stop}}
	if o.AddSpecial && v.addBOS {
		f.id(v.special.bos)
	}
	s := &v.special
	project := s.fimRepo != none && s.fimFile != none
	if len(beside) > 0 && project {
		f.id(s.fimRepo)
		f.text("project\n")
	}
	for _, b := range beside {
		if project {
			f.id(s.fimFile)
			f.text(b.Name + "\n" + b.Text)
		} else {
			f.text("--- " + b.Name + "\n" + b.Text + "\n\n")
		}
	}
	if len(beside) > 0 && project {
		f.id(s.fimFile)
		f.text("this\n")
	}
	f.id(s.fimPrefix)
	f.text(before)
	f.id(s.fimSuffix)
	f.text(after)
	f.id(s.fimMiddle)
	return f.ids, f.err
}

// filler appends to ids until the first error.
type filler struct {
	v   *Vocab
	o   Options
	ids []ID
	err error
}

func (f *filler) id(id ID) { f.ids = append(f.ids, id) }

func (f *filler) text(text string) {
	if f.err == nil && text != "" {
		f.ids, f.err = f.v.Encode(f.ids, text, f.o)
	}
}
