package actors

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// Sessions keeps texts of slots, with their blocks, in files of a folder. Its methods may be called from any goroutine.
type Sessions struct {
	folder *sessionfiles.Folder
	log    zerolog.Logger
	others Others // nil: no other machine is asked
}

// Others returns what another machine lends (Sessions.Lend) of a session of a model, an owner and a name, and how many
// bytes that are. The error is ErrSessionMissing if none has it.
type Others func(model, owner, name string) (from io.ReadCloser, size int64, err error)

// Ask has sessions that are not in the folder restored from other machines. It is called before any is.
func (s *Sessions) Ask(others Others) { s.others = others }

// KeepSessions has sessions saved in a folder.
func KeepSessions(folder *sessionfiles.Folder, log zerolog.Logger) *Sessions {
	return &Sessions{folder: folder, log: log.With().Str("folder", folder.Path()).Logger()}
}

// SessionFile is a session's file that is read, for who may not import storage.
type SessionFile = sessionfiles.File

// StateKey encrypts what is kept, likewise.
type StateKey = sealed.Key

// ReadSession reads all but the blocks of a session's file of this size, which a key encrypted, or none. The error
// wraps ErrSessionBroken if it holds no whole session.
func ReadSession(from io.ReaderAt, size int64, key *StateKey) (*SessionFile, error) {
	return sessionfiles.Read(from, size, key)
}

// Errors of saved sessions. Others are of the engine, or say why a file cannot be read or written.
var (
	ErrNoText         = errors.New("the slot remembers no text of 64 tokens or more: ask it something first")
	ErrNotCached      = errors.New("nothing of the slot's text is in the cache any more: ask it again first")
	ErrSessionMissing = sessionfiles.ErrMissing
	ErrSessionsFull   = sessionfiles.ErrFull
	ErrSessionBroken  = sessionfiles.ErrBroken
	ErrForeign        = errors.New("read the text anew, and save it again")
)

// Moved says what of a text was saved, restored or forgotten.
type Moved struct {
	Tokens int   // that need not be computed: whole blocks
	Bytes  int64 // of the file
}

// Save writes the text of a slot, as far as its blocks are cached, to the session of a name.
func (s *Sessions) Save(e *Engine, of Slot, name string) (m Moved, err error) {
	x, found := e.slots.get(of)
	if !found || len(x.tokens) == 0 {
		return m, ErrNoText
	}
	var draft *sessionfiles.Draft
	h := sessionfiles.Header{Owner: of.Owner, Name: name, Salt: x.salt}
	m, err = e.export(h, x.tokens, nil, func(bytes int64) (_ io.Writer, err error) {
		draft, err = s.folder.Create(of.Owner, name, bytes)
		return draft, err
	})
	if err == nil && draft == nil {
		err = ErrNotCached
	}
	if draft != nil {
		if err == nil {
			err = draft.Commit(now())
		}
		err = errors.Join(err, draft.Close())
	}
	return m, s.told(err, "a session cannot be saved")
}

// Restore has the blocks of a session in the cache, and its text in a slot.
func (s *Sessions) Restore(e *Engine, to Slot, name string) (Moved, error) {
	f, closer, err := s.folder.Open(to.Owner, name)
	if errors.Is(err, ErrSessionMissing) && s.others != nil {
		f, closer, err = s.bring(e, to.Owner, name)
	}
	if err != nil {
		return Moved{}, s.told(err, "a saved session cannot be read")
	}
	defer closer.Close()
	m, err := e.RestoreText(to, f)
	return m, s.told(err, "a saved session cannot be used")
}

// bring opens a session that another machine has, as if it were one of ours; its blocks are still coming.
func (s *Sessions) bring(e *Engine, owner, name string) (f *sessionfiles.File, closer io.Closer, err error) {
	from, size, err := s.others(e.Info.Name, owner, name)
	if err != nil {
		return nil, nil, err
	}
	in, err := receive(filepath.Join(s.folder.Path(), "brought"), from)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	if f, err = sessionfiles.Read(in, size, nil); err != nil {
		return nil, nil, err
	}
	if f.Owner != owner || f.Name != name {
		return nil, nil, fmt.Errorf("it is of another client, or has another name: %w", ErrSessionBroken)
	}
	traits, err := e.traitsAfar()
	if err != nil {
		return nil, nil, err
	}
	if what := f.Differs(traits); what != "" {
		return nil, nil, fmt.Errorf("the session is of another %s: %w", what, ErrForeign)
	}
	f.Kind = e.caches.traits
	return f, in, nil
}

// traitsAfar are the traits of the model's blocks as other machines know them: by the weights' content, and not by what
// this one knows their file by.
func (e *Engine) traitsAfar() ([]sessionfiles.Trait, error) {
	if e.spec.kept.Content == "" || len(e.caches.traits) == 0 {
		return nil, errUnknown
	}
	all := slices.Clone(e.caches.traits)
	all[0].Value = e.spec.kept.Content
	return all, nil
}

// Lend writes the session of an owner and a name to what create returns, to which so many bytes will be written, for
// another machine: it is not encrypted, as what carries it is, and that one has a key of its own.
func (s *Sessions) Lend(e *Engine, owner, name string, create func(bytes int64) (io.Writer, error)) error {
	f, closer, err := s.folder.Open(owner, name)
	if err != nil {
		return s.told(err, "a saved session cannot be read")
	}
	defer closer.Close()
	if what := f.Differs(e.caches.traits); what != "" {
		return fmt.Errorf("the session is of another %s: %w", what, ErrForeign)
	}
	h := f.Header
	h.Key = nil
	if h.Kind, err = e.traitsAfar(); err != nil {
		return err
	}
	bytes, err := sessionfiles.Size(h, len(f.Tokens), len(f.Note))
	if err != nil {
		return err
	}
	to, err := create(bytes)
	if err != nil {
		return err
	}
	w, err := sessionfiles.NewWriter(to, h, f.Tokens, f.Note)
	for class, c := range h.Classes {
		block := make([]byte, c.Bytes)
		for i := range c.Blocks {
			if err == nil {
				err = f.Block(class, i, block)
			}
			if err == nil {
				err = w.Block(block)
			}
		}
	}
	return err
}

// Erase forgets the text of a slot, and drops those of its blocks that no other text begins with.
func (s *Sessions) Erase(e *Engine, of Slot) (Moved, error) {
	x, _ := e.slots.get(of)
	t := &transfer{do: forget, salt: x.salt, tokens: x.tokens}
	err := e.transfer(t)
	if err == nil {
		e.slots.mu.Lock()
		e.slots.drop(of)
		e.slots.mu.Unlock()
	}
	return Moved{Tokens: len(x.tokens)}, err
}

// Remove deletes the session of an owner and a name, and says whether there was one.
func (s *Sessions) Remove(owner, name string) bool { return s.folder.Remove(owner, name) }

// told logs an error of files.
func (s *Sessions) told(err error, what string) error {
	for _, usual := range []error{ErrNoText, ErrNotCached, ErrSessionMissing, ErrSessionsFull, ErrCrowded, ErrClosed} {
		if errors.Is(err, usual) {
			return err
		}
	}
	if err != nil {
		s.log.Warn().Err(err).Msg(what)
	}
	return err
}

// transfer carries out a transfer.
func (e *Engine) transfer(t *transfer) error {
	if err := e.Health(); err != nil {
		return err
	}
	if err := e.stay.begin(); err != nil {
		return err
	}
	defer e.stay.end()
	e.carrying.Lock()
	defer e.carrying.Unlock()
	t.done = make(chan struct{})
	e.transfers.Store(t)
	defer e.transfers.Store(nil)
	if err := e.health.get(); err != nil { // who failed the model since may have missed this one
		return err
	}
	if e.stay.ends() { // likewise
		return ErrClosed
	}
	e.wiring.facade.transfer.Send(t)
	select {
	case <-t.done:
	case <-e.house.health.ready: // the house has failed, and its actors with it
		t.end(e.Health())
	}
	t.mu.Lock() // until the mover has left what it is given
	defer t.mu.Unlock()
	if errors.Is(t.err, ErrClosed) && e.Health() == nil && !e.stay.ends() { // its actors alone have begun again
		return errMoved
	}
	return t.err
}

// SaveText writes the text of a slot and a note to what create returns, to which so many bytes will be written: with
// the blocks that are cached of the text, or without any, if it is not known which or the engine has failed. Errors are
// those of the file.
func (e *Engine) SaveText(of Slot, note []byte, create func(bytes int64) (io.Writer, error)) (Moved, error) {
	x, _ := e.slots.get(of)
	begun := false
	h := sessionfiles.Header{Salt: x.salt}
	m, err := e.export(h, x.tokens, note, func(bytes int64) (io.Writer, error) {
		begun = true
		return create(bytes)
	})
	if begun {
		return m, err
	}
	h = sessionfiles.Header{Kind: e.caches.traits, Key: e.spec.kept.Key}
	if m.Bytes, err = sessionfiles.Size(h, 0, len(note)); err != nil {
		return m, err
	}
	to, err := create(m.Bytes)
	if err == nil {
		_, err = sessionfiles.NewWriter(to, h, nil, note)
	}
	return m, err
}

// RestoreText has the blocks of a file in the cache, and its text in a slot. What is of another model, arithmetic or
// layout is ErrForeign; of a file that is torn nothing is used.
func (e *Engine) RestoreText(to Slot, f *sessionfiles.File) (m Moved, err error) {
	if len(f.Tokens) > 0 {
		m, err = e.restore(f)
	}
	if err == nil {
		e.slots.mu.Lock()
		e.slots.put(slotText{to, f.Salt, f.Tokens})
		e.slots.mu.Unlock()
	}
	return m, err
}

// export copies the blocks that are cached of a text to what create returns, to which so many bytes will be written. A
// header without kind and classes comes with it. If nothing is cached, create is not called.
func (e *Engine) export(h sessionfiles.Header, tokens []int32, note []byte,
	create func(bytes int64) (io.Writer, error)) (m Moved, err error) {
	if h.Kind, h.Key = e.caches.traits, e.spec.kept.Key; e.spec.kept.Weights == "" {
		return m, errUnknown
	}
	var w *sessionfiles.Writer
	t := &transfer{do: copyOut, salt: h.Salt, tokens: tokens}
	t.ready = func(tables []backend.Table, each []int) error {
		for i, x := range tables {
			h.Classes = append(h.Classes, sessionfiles.Class{Bytes: each[i], First: x.First, Blocks: len(x.Blocks)})
		}
		if m.Bytes, err = sessionfiles.Size(h, t.cached, len(note)); err != nil {
			return err
		}
		to, err := create(m.Bytes)
		if err != nil {
			return err
		}
		w, err = sessionfiles.NewWriter(to, h, tokens[:t.cached], note)
		return err
	}
	t.carry = func(_, _ int, memory []byte) error { return w.Block(memory) }
	if err := e.transfer(t); err != nil {
		return Moved{}, err
	}
	m.Tokens = t.cached
	return m, nil
}

var errUnknown = errors.New("the model was loaded without knowing which it is: no session of it can be saved")

// restore has the blocks of a file in the cache, unless it is of another model, arithmetic or layout.
func (e *Engine) restore(f *sessionfiles.File) (Moved, error) {
	if e.spec.kept.Weights == "" {
		return Moved{}, errUnknown
	}
	if what := f.Differs(e.caches.traits); what != "" {
		return Moved{}, fmt.Errorf("the session is of another %s: %w", what, ErrForeign)
	}
	t := &transfer{do: copyIn, salt: f.Salt, tokens: f.Tokens, carry: f.Block}
	t.ready = func(tables []backend.Table, each []int) error {
		if len(tables) != len(f.Classes) {
			return fmt.Errorf("the session has %d cache classes, the model %d: %w", len(f.Classes), len(tables), ErrForeign)
		}
		for i, x := range tables {
			want := sessionfiles.Class{Bytes: each[i], First: x.First, Blocks: len(x.Blocks)}
			if f.Classes[i] != want {
				return fmt.Errorf("the session has %+v of cache class %d, want %+v: %w", f.Classes[i], i, want, ErrForeign)
			}
		}
		return nil
	}
	if err := e.transfer(t); err != nil {
		return Moved{}, err
	}
	return Moved{Tokens: t.cached, Bytes: f.Bytes}, nil
}
