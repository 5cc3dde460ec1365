package route

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is why no member takes a request.
type Reason uint8

const (
	Unknown Reason = iota + 1 // no member knows the model
	Drained                   // those that know it are to get nothing new
	Failed                    // those that took it failed
	Busy                      // one of those that may get it has as many requests as it takes
)

// Nowhere says that no member takes a request.
type Nowhere struct {
	Reason Reason
	Model  string
	Known  []string // with Unknown: the models that members know, in order
	Tried  []string // members that know it and failed
}

func (r *Nowhere) Error() string {
	switch r.Reason {
	case Unknown:
		if len(r.Known) == 0 {
			return fmt.Sprintf("no member of the cluster has the model %q, nor any other: start one that has it", r.Model)
		}
		return fmt.Sprintf("no member of the cluster has the model %q: they have %s", r.Model, strings.Join(r.Known, ", "))
	case Drained:
		return fmt.Sprintf("all members with the model %q are drained: start another one", r.Model)
	case Busy:
		return fmt.Sprintf("all members with the model %q have as many requests as they take: try again later", r.Model)
	default:
		return fmt.Sprintf("no member is left that could answer with the model %q: %s failed", r.Model,
			strings.Join(r.Tried, ", "))
	}
}

// refuse says why none of the members takes a request: the reason of the one that comes closest.
func refuse(members []Member, r *Request) *Nowhere {
	f := &Nowhere{Reason: Unknown, Model: r.Model}
	for i := range members {
		m := &members[i]
		for _, o := range m.Models {
			f.Known = append(f.Known, o.Name)
		}
		why := Unknown
		switch {
		case m.model(r.Model) == nil:
		case slices.Contains(r.Not, m.Name):
			why = Failed
			f.Tried = append(f.Tried, m.Name)
		case m.Full && !m.Drained:
			why = Busy
		default:
			why = Drained
		}
		f.Reason = max(f.Reason, why)
	}
	slices.Sort(f.Tried)
	slices.Sort(f.Known)
	f.Known = slices.Compact(f.Known)
	return f
}
