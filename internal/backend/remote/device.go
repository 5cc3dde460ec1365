package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Options say who lends and what he has to be.
type Options struct {
	Addr string // of the lender, for people
	// Dial connects to the lender, past whatever lets us in, and says who that is.
	Dial  func(context.Context) (conn net.Conn, name string, err error)
	Build string         // of this program; another one is refused
	Like  backend.Device // that computes the other segments: the lender's has to compute alike; nil: it need not
}

// flight is how many steps are on their way to a lender: one is computed, and the next one is there when it has ended.
const flight = 2

// patience is how long a lender is waited for, who may have just begun again.
const patience = 20 * time.Second

// Device is a lender's device.
type Device struct {
	options Options
	name    string // of the lender
	is      greeting
}

// Open connects to a lender, hears what he has, and hangs up: each model has a connection of its own.
func Open(o Options) (*Device, error) {
	d := &Device{options: o}
	l, is, err := d.call()
	if err != nil {
		return nil, err
	}
	l.end()
	d.is, d.name = *is, l.name
	return d, nil
}

// Name says whose device it is, and what.
func (d *Device) Name() string { return "member " + d.name + " (" + d.is.Device + ")" }

// Traits: it computes beside the program, and weights stay there.
func (d *Device) Traits() backend.Traits {
	return backend.Traits{Flight: flight, Memory: backend.OwnMemory, Free: max(d.is.Free, 1), Away: true, Meter: d,
		Halves: d.is.Halves, Driver: d.is.Driver, Lacks: lacks}
}

// lacks refuses what Compile would.
func lacks(p *ir.Program) error {
	if len(p.Sites) > 0 {
		return fmt.Errorf("adapters: %w", errors.ErrUnsupported)
	}
	return nil
}

// Close has nothing to close: connections are the models'.
func (d *Device) Close() error { return nil }

// call connects and exchanges greetings.
func (d *Device) call() (l *line, is *greeting, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, name, err := d.options.Dial(ctx)
	if err != nil {
		return nil, nil, &away{fmt.Errorf("%s: %w", cmp.Or(d.name, d.options.Addr), err)}
	}
	l = newLine(conn, name)
	own := greeting{Protocol: protocol, Build: d.options.Build}
	if like := d.options.Like; like != nil {
		own.Device, own.Driver = like.Name(), like.Traits().Driver
	}
	is = &greeting{}
	if err = l.json(kindGreet, own, is); err == nil {
		err = own.fits(is, name)
	} else if errors.Is(err, backend.ErrLost) {
		err = &away{err}
	}
	if err != nil {
		l.end()
		return nil, nil, err
	}
	return l, is, nil
}

// away is why a lender is not there, who may come back.
type away struct{ error }

func (a *away) Unwrap() error { return a.error }

// json asks for x, and reads the answer into y.
func (l *line) json(k kind, x, y any) error {
	text, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("what %s cannot be told: %w: %w", l.name, err, errors.ErrUnsupported)
	}
	return l.wait(append(frame(nil, k), text...), func(answer []byte) error {
		b := body{rest: answer}
		if err := b.fault(l.name); err != nil {
			return err
		}
		return read(b.rest, y)
	})
}

// Compile connects anew. A lender who is not there is waited for, and then lost.
func (d *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	j, err := newJob(p, &c)
	if err != nil {
		return nil, err
	}
	l, err := d.again()
	if err != nil {
		return nil, err
	}
	var t terms
	if err = l.json(kindCompile, j, &t); err == nil && len(t.Blocks) != len(p.Classes) || t.Grain < 1 && err == nil {
		err = fmt.Errorf("%s: %w: %d cache classes, pieces of %d rows", d.name, errGarbage, len(t.Blocks), t.Grain)
	}
	if err != nil {
		l.end()
		return nil, err
	}
	return newModel(l, p, &c, &t), nil
}

// again calls until somebody answers, for a while.
func (d *Device) again() (*line, error) {
	const pause = time.Second
	for until := time.Now().Add(patience); ; time.Sleep(pause) {
		l, is, err := d.call()
		var gone *away
		switch {
		case err == nil && (is.Device != d.is.Device || is.Driver != d.is.Driver):
			l.end()
			return nil, fmt.Errorf("%s computes on %s now, and computed on %s: start again", d.name, called(is),
				called(&d.is))
		case err == nil:
			return l, nil
		case !errors.As(err, &gone):
			return nil, err
		case time.Now().After(until):
			return nil, fmt.Errorf("%w: %w", backend.ErrLost, err)
		}
	}
}

// Ceilings: it has no clock.
func (*Device) Ceilings(bool) (read, multiply []float64, err error) { return nil, nil, nil }

// Rates measures the connection: how long a turn takes, and how fast bytes go.
func (d *Device) Rates() (r backend.Rates, err error) {
	l, is, err := d.call()
	if err != nil {
		return r, err
	}
	defer l.end()
	probe := func(bytes int) (time.Duration, error) {
		began := time.Now()
		err := l.wait(append(frame(nil, kindProbe), make([]byte, bytes)...), func(answer []byte) error { return nil })
		return time.Since(began), err
	}
	const turns, pieces, piece = 15, 9, 4 << 20
	var took []time.Duration
	for range turns {
		one, err := probe(0)
		if err != nil {
			return r, err
		}
		took = append(took, one)
	}
	turn := median(took)
	for took = took[:0]; len(took) < pieces; {
		one, err := probe(piece)
		if err != nil {
			return r, err
		}
		took = append(took, max(one-turn, time.Nanosecond))
	}
	return backend.Rates{Bus: piece / median(took).Seconds(), Memory: float64(is.Read), Turn: turn.Seconds()}, nil
}

// median of some times.
func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }
