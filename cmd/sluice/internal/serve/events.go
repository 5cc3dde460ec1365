package serve

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server/kvevents"
)

// eventFlags publish what prompts can begin with, for routers of other projects.
type eventFlags struct {
	Events string `name:"kv-events" placeholder:"ENDPOINT" help:"Tell routers such as llm-d's which prefixes are cached, by events as vLLM publishes them over ZeroMQ: listen at tcp://*:5557 or HOST:PORT, or call tcp://HOST:PORT. Of one model. Whoever reaches the address reads the tokens of prompts, but not those of clients whose keys keep theirs apart."`
	Replay string `name:"kv-events-replay" placeholder:"ENDPOINT" help:"Repeat events there for who missed some, such as tcp://*:5558."`
	Topic  string `name:"kv-events-topic" placeholder:"TEXT" help:"Topic of the events. Routers find the server and the model in it. Default: kv@, this machine's name, @, the model's name."`

	to *kvevents.Publisher // nil: nobody is told
}

// check refuses what would tell nobody anything.
func (f *eventFlags) check(keyed, shared bool) error {
	switch {
	case f.Events == "" && (f.Replay != "" || f.Topic != ""):
		return env.Usagef("--kv-events-replay and --kv-events-topic are of events: publish them with --kv-events ENDPOINT")
	case f.Events == "":
		return nil
	case keyed && !shared:
		return env.Usagef("--kv-events tells of prompts that all clients share, and those of each key are apart: share them with " +
			"--share-prefix, or take no keys")
	}
	for _, flag := range [][2]string{{"--kv-events", f.Events}, {"--kv-events-replay", f.Replay}} {
		if _, _, err := kvevents.Parse(flag[1]); err != nil && flag[1] != "" {
			return env.Usagef("%s: %v", flag[0], err)
		}
	}
	return nil
}

// open begins to publish, if it is asked for. names are those of all models.
func (f *eventFlags) open(e *env.Env, o kvevents.Options, names []string, others bool) (err error) {
	if f.Events == "" {
		return nil
	}
	if len(names) != 1 || others {
		return env.Usagef("--kv-events is of servers of one model, since events do not name it: serve it alone, with -m")
	}
	o.Events, o.Replay, o.Topic = f.Events, f.Replay, f.Topic
	if o.Topic == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("--kv-events: this machine has no name: give a topic with --kv-events-topic: %w", err)
		}
		o.Topic = "kv@" + host + "@" + names[0]
	}
	if f.to, err = kvevents.Open(o); err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = fmt.Errorf("%s: %w: choose another address, or stop what listens there", op.Addr, op.Err)
		}
		return fmt.Errorf("--kv-events: %w", err)
	}
	at, replays := f.to.Addrs()
	said := "calling " + f.Events
	if at != nil {
		said = "at " + at.String()
	}
	if replays != nil {
		said += ", replays at " + replays.String()
	}
	_, err = fmt.Fprintf(e.Stderr, "sluice: KV events of topic %s, %s\n", env.Printable(o.Topic), said)
	return err
}

// attach has a model tell what it has.
func (f *eventFlags) attach(m *actors.Model) {
	if f.to != nil {
		m.News = f.to.Tell
	}
}

// close is called when no model tells anything any more.
func (f *eventFlags) close() {
	if f.to != nil {
		f.to.Close()
	}
}
