package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/sluice-ai/sluice/stages/route"
)

// version is the format of reports, and of what travels beside events. Members of another one are refused by name.
const version = 2

// Bounds of what a member believes of another.
const (
	mostReport  = 8 << 20 // bytes
	mostModels  = 256
	mostMembers = 64
)

// Report is what a member says of itself when it calls another one, and what it is answered.
type Report struct {
	Version int       `json:"version"`
	Member  string    `json:"member"`
	Addr    string    `json:"addr"` // where it takes others
	Drained bool      `json:"drained,omitempty"`
	Models  []offered `json:"models"`
	Others  []string  `json:"others,omitempty"` // addresses of members that it hears of
}

// offered is a route.Model on the wire; times are nanoseconds.
type offered struct {
	Name  string        `json:"name"`
	Load  time.Duration `json:"load,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"`
	Token time.Duration `json:"token,omitempty"`
	Each  time.Duration `json:"each,omitempty"`
	Known []byte        `json:"known,omitempty"`
}

// ReadReport reads a report from a connection, and refuses what no member says.
func ReadReport(r io.Reader) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostReport+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostReport {
		return nil, fmt.Errorf("its report has more than %d bytes", mostReport)
	}
	var is Report
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, fmt.Errorf("its report is not JSON as we know it: %w: is it of another version of the program?", err)
	}
	switch {
	case is.Version != version:
		return nil, fmt.Errorf("its reports are of version %d, and ours of version %d: run the same program on all members",
			is.Version, version)
	case len(is.Models) > mostModels:
		return nil, fmt.Errorf("it reports %d models: want at most %d", len(is.Models), mostModels)
	case len(is.Others) > mostMembers:
		return nil, fmt.Errorf("it reports %d other members: want at most %d", len(is.Others), mostMembers)
	}
	for _, addr := range append(is.Others, is.Addr) {
		if err := CheckAddr(addr); err != nil {
			return nil, err
		}
	}
	return &is, nil
}

// CheckAddr refuses what is no address of a member.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" || port == "0" || len(addr) > 300 {
		return fmt.Errorf("%.80q is no address of a member: want HOST:PORT that others reach", addr)
	}
	return nil
}

// member is what a report says, as routing has it.
func (r *Report) member() (route.Member, error) {
	m := route.Member{Name: r.Member, Drained: r.Drained}
	var all error
	for i := range r.Models {
		o := &r.Models[i]
		x := route.Model{Name: o.Name, Load: o.Load, Wait: o.Wait, Token: o.Token, Each: o.Each}
		all = errors.Join(all, x.Known.UnmarshalBinary(o.Known))
		m.Models = append(m.Models, x)
	}
	return m, all
}

func (r *Report) offer(models []route.Model) {
	for _, m := range models {
		known, _ := m.Known.MarshalBinary() // it never fails
		r.Models = append(r.Models, offered{m.Name, m.Load, m.Wait, m.Token, m.Each, known})
	}
}
