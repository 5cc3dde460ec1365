package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/stages/chat"
)

// SessionFlag is --session.
type SessionFlag struct {
	Session string `name:"session" placeholder:"FILE" help:"Go on with the conversation of a file, and write it there at the end: with what was computed of it, so that nothing is read again. A new file is made if there is none; only its owner can read it."`
}

// keptTalk is a conversation that goes on from one process to the next, in a session's file. A nil one keeps nothing.
type keptTalk struct {
	path   string
	file   *actors.SessionFile // as it was found; nil: there was none
	closer io.Closer
	past   pastTalk
	talk   chat.Conversation
}

// pastTalk is the note of the file.
type pastTalk struct {
	Talk    json.RawMessage `json:"conversation"`
	Answers uint64          `json:"answers"` // whose seeds were used
	Left    int             `json:"left,omitempty"`
	Seed    uint64          `json:"seed"`
}

// open reads the file that the flag names, if there is one, but for its blocks. Its seed holds where the flags have
// none.
func (s *SessionFlag) open(sampling *compute.SamplingFlags, flags *compute.Flags) (_ *keptTalk, err error) {
	if s.Session == "" {
		return nil, nil
	}
	flags.Identified()
	k := &keptTalk{path: s.Session}
	from, info, err := safefile.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, k.writable()
	}
	if err != nil {
		return nil, fmt.Errorf("--session: %w", env.OnFile(k.path, err))
	}
	k.closer = from
	if k.file, err = actors.ReadSession(from, info.Size(), flags.StateKey()); err == nil {
		if err = json.Unmarshal(k.file.Note, &k.past); err == nil {
			k.talk, err = chat.ParseConversation(string(k.past.Talk))
		}
	}
	if err != nil {
		k.close()
		return nil, fmt.Errorf("--session: %s: %w: name another file", k.path, err)
	}
	if sampling.Seed == nil {
		sampling.Seed = &k.past.Seed
	}
	return k, k.writable()
}

// writable refuses a file for which there is no place, before anything is asked.
func (k *keptTalk) writable() error {
	f, err := safefile.Scratch(k.path)
	if err != nil {
		k.close()
		return fmt.Errorf("--session: %w", env.OnFile(k.path, err))
	}
	return f.Close()
}

// close closes the file that was read.
func (k *keptTalk) close() {
	if k != nil && k.closer != nil {
		_ = k.closer.Close() // it was read
		k.closer = nil
	}
}

// resume has a dialogue go on where the file's ended; a system message counts more than what it began with. Blocks that
// are of another model, arithmetic or build are not used, which a person is told.
func (k *keptTalk) resume(e *env.Env, d *dialogue, system string) error {
	if k == nil {
		return nil
	}
	d.remembers()
	if k.file == nil {
		return nil
	}
	defer k.close()
	d.Conversation, d.earlier, d.left = k.talk, k.past.Answers, k.past.Left
	if system != "" {
		d.setSystem(system)
	}
	_, err := d.engine.RestoreText(*d.keeps.slot, k.file)
	if errors.Is(err, actors.ErrSessionBroken) {
		return fmt.Errorf("--session: %s: %w: name another file", k.path, err)
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "sluice: %s: what was computed is not used, and the conversation is read again: %v\n", k.path, err)
	}
	return nil
}

// save writes the conversation to the file, in place of what was there, once it is whole.
func (k *keptTalk) save(d *dialogue) error {
	if k == nil {
		return nil
	}
	if _, err := d.writeSession(k.path, true); err != nil {
		return fmt.Errorf("--session: %s: %w: the conversation was not kept, and the file is as it was", k.path, err)
	}
	return nil
}

// writeSession writes the conversation to a session's file, once it is whole, and says what was computed of it.
func (d *dialogue) writeSession(path string, replace bool) (m actors.Moved, err error) {
	talk, err := encodeTalk(d.Conversation)
	if err != nil {
		return m, err
	}
	note, err := json.Marshal(pastTalk{talk, d.earlier + d.tally.answers, d.left, d.sampling.Seed})
	if err != nil {
		return m, err
	}
	var out *safefile.File
	m, err = d.engine.SaveText(*d.keeps.slot, note, func(int64) (_ io.Writer, err error) {
		out, err = safefile.Create(path, 0o600, replace)
		return out, err
	})
	if out != nil {
		if err == nil {
			err = out.Commit()
		}
		err = errors.Join(err, out.Close())
	}
	return m, err
}

// keep has blocks kept where the flags say, and reads the file of --session.
func (c *Run) keep(e *env.Env) (*keptTalk, error) {
	if c.Session != "" && (c.Raw || c.Tokens != nil || c.JSON || c.IgnoreEOS || len(c.Stop) > 0) {
		return nil, env.Usagef("--session goes on with a conversation: drop --raw, --tokens, --json, --stop and --ignore-eos")
	}
	if err := c.Keep(e, &c.Flags, ""); err != nil {
		return nil, err
	}
	return c.SessionFlag.open(&c.SamplingFlags, &c.Flags)
}

// goOn answers a prompt as the next message of a kept conversation. Thoughts are not shown.
func (c *Run) goOn(ctx context.Context, e *env.Env, kept *keptTalk, d *dialogue, prompt string) (err error) {
	if c.Temp == nil {
		c.Temp = new(float32) // as without --session
	}
	if d.sampling, err = c.Params(d.engine); err != nil {
		return err
	}
	d.most, d.thinks, d.sees = max(c.N, 0), c.ThinkFlag, d.engine.Habits().Sees
	d.watch = func(s prompted) func() { return watchReading(e, s) }
	if c.System != "" {
		d.setSystem(c.System)
	}
	if err := kept.resume(e, d, c.System); err != nil {
		return err
	}
	v := voice{Pane: env.Pane{W: e.Stdout}}
	got, err := d.ask(ctx, prompt, v.say)
	err = errors.Join(err, v.end())
	if got.kept {
		c.cut(e, d.tally.last, got.finish, d.engine.Info.Context)
		err = errors.Join(err, kept.save(d))
	}
	return err
}
