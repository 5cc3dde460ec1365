package ask

import "github.com/sluice-ai/sluice/stages/chat/jinja"

// Dict is an object with some members: keys and values in turn.
func Dict(members ...any) *jinja.Dict {
	d := &jinja.Dict{}
	for i := 0; i < len(members); i += 2 {
		d.Set(members[i].(string), members[i+1].(jinja.Value))
	}
	return d
}

// Value is a member of an object, nil where there is none.
func Value(d *jinja.Dict, key string) jinja.Value {
	if d == nil {
		return nil
	}
	v, _ := d.Get(key)
	return v
}

// Text is a member that is a text, "" where there is none.
func Text(d *jinja.Dict, key string) string {
	s, _ := Value(d, key).(jinja.Str)
	return string(s)
}
