package token

// Snippet is a text that accompanies one with a gap, such as another file of the project.
type Snippet struct{ Name, Text string }

// FillsIn reports whether the vocabulary has the tokens that mark a gap in a text: its model was trained to fill
// gaps.
func (v *Vocab) FillsIn() bool {
	s := &v.special
	return s.fimPrefix != none && s.fimSuffix != none && s.fimMiddle != none
}

// Fill encodes a text with a gap, for a vocabulary that FillsIn: the snippets, the text before the gap, the text
// after it, and the token after which the model continues. All texts are plain, whatever o says. The order is that of
// llama.cpp's server; snippets become files of a project if there are tokens for those. It fails as Encode does.
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

// filler appends to ids until the first error, which it keeps.
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
