package compute

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/storage/answerfiles"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/incidents"
	"github.com/sluice-ai/sluice/storage/kvfiles"
	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// KeepFlag is --kv-disk, of commands that answer.
type KeepFlag struct {
	KVDisk string `name:"kv-disk" placeholder:"DIR[:SIZE]" help:"Folder in which what prompts begin with is kept, so that it is not computed again after a restart, and how much it may take: 8G without SIZE. off: nowhere. It is as private as the conversations."`
}

// IncidentsFlag is --incidents.
type IncidentsFlag struct {
	Incident string `name:"incidents" default:"1G" placeholder:"SIZE" help:"With --state: how much the last of what models did may take there, as token ids, for sluice replay and sluice why; the oldest goes. off: nothing is recorded. Default: 1G."`
}

// Incidents has what models do recorded below a state folder, until the tape is closed; nil: it is not.
func (i *IncidentsFlag) Incidents(f *Flags, state string, log zerolog.Logger) (*actors.Tape, error) {
	size := env.Size(0)
	if i.Incident != "off" {
		if err := size.UnmarshalText([]byte(i.Incident)); err != nil {
			return nil, env.Usagef("--incidents is %q: want a size such as 1G, or off", i.Incident)
		}
	}
	if state == "" || i.Incident == "off" {
		return nil, nil
	}
	path := filepath.Join(state, "incidents")
	folder, err := incidents.OpenFolder(path, int64(size))
	if err != nil {
		return nil, fmt.Errorf("--incidents: %w", env.OnFile(path, err))
	}
	folder.Encrypt(f.stateKey)
	return actors.KeepIncidents(folder, log), nil
}

// StateKeyName is the variable of the environment that has the key by which all that is kept is encrypted. It is no
// flag: other users see those of a process.
const StateKeyName = "SLUICE_STATE_KEY"

// StateKeys are the keys by which what was kept may have been encrypted; none of them may be nil.
func StateKeys(e *env.Env) (keys []*sealed.Key, err error) {
	key, err := stateKey(e)
	if key != nil {
		keys = append(keys, key)
	}
	return keys, err
}

// stateKey reads the key in the environment; nil: there is none.
func stateKey(e *env.Env) (*sealed.Key, error) {
	text, set := e.Lookup(StateKeyName)
	if !set {
		return nil, nil
	}
	key, err := sealed.Parse(text)
	if err != nil {
		return nil, env.Usagef("%s: %v", StateKeyName, err)
	}
	return key, nil
}

// StateKey encrypts what is kept; nil: it is not encrypted. Keep finds it.
func (f *Flags) StateKey() *sealed.Key { return f.stateKey }

// keptBytes is what a folder may take, if nothing is said.
const keptBytes = 8 << 30

// Keep has models that are loaded with the flags keep their cached blocks in the folder that the flag names, or else in
// usual; "": in none. It finds the key by which that is encrypted.
func (k *KeepFlag) Keep(e *env.Env, f *Flags, usual string) (err error) {
	if f.stateKey, err = stateKey(e); err != nil {
		return err
	}
	path, size := k.KVDisk, env.Size(keptBytes)
	if at := strings.LastIndexByte(path, ':'); at > 0 && size.UnmarshalText([]byte(path[at+1:])) == nil {
		path = path[:at]
	}
	switch path {
	case "off":
		return nil
	case "":
		if path = usual; path == "" {
			return nil
		}
	}
	if f.kept, err = kvfiles.Open(path, int64(size), e.Now()); err != nil {
		return fmt.Errorf("--kv-disk: %w", env.OnFile(path, err))
	}
	f.kept.Encrypt(f.stateKey)
	return nil
}

// StateFlag is --state.
type StateFlag struct {
	State string `name:"state" placeholder:"DIR" help:"Folder for what outlives the server, which only its owner may read: what prompts begin with, in kv below it (--kv-disk says otherwise), streamed answers, which go on after a crash, and sessions that clients save (POST /slots/ID?action=save). Without it nothing is written."`
}

// KVFolder is the folder of cached blocks in it; "": there is none.
func (s *StateFlag) KVFolder() string {
	if s.State == "" {
		return ""
	}
	return filepath.Join(s.State, "kv")
}

// keptAnswers is what answers may take in --state.
const keptAnswers = 512 << 20

// Answers returns where answers are kept so that they outlive the process, and what ends that; nil without --state.
func (s *StateFlag) Answers(e *env.Env, f *Flags, log zerolog.Logger) (_ *actors.Answers, closed func(), err error) {
	if s.State == "" {
		return nil, func() {}, nil
	}
	path := filepath.Join(s.State, "answers")
	folder, err := answerfiles.OpenFolder(path, keptAnswers, e.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("--state: %w", env.OnFile(path, err))
	}
	folder.Encrypt(f.stateKey)
	a := actors.KeepAnswers(folder, log)
	return a, func() { a.Close(); folder.Close() }, nil
}

// keptSessions is what saved sessions may take in --state.
const keptSessions = 8 << 30

// Sessions returns where clients' sessions are saved, and has models that are loaded with the flags know which they
// are; nil without --state.
func (s *StateFlag) Sessions(f *Flags, log zerolog.Logger) (*actors.Sessions, error) {
	if s.State == "" {
		return nil, nil
	}
	path := filepath.Join(s.State, "sessions")
	folder, err := sessionfiles.OpenFolder(path, keptSessions)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", env.OnFile(path, err))
	}
	folder.Encrypt(f.stateKey)
	f.Identified()
	return actors.KeepSessions(folder, log), nil
}

// Identified has models that are loaded with the flags know which they are, so that sessions of them can be saved, and
// answers go on at other members of a cluster.
func (f *Flags) Identified() { f.identified = true }

// hashed is the size of files of which every byte is hashed. It takes a tenth of a second.
const hashed = 64 << 20

// keep adds to a model which one it is, and where its cached blocks are kept, if anything of them is.
func (f *Flags) keep(m *actors.Model) error {
	if f.kept == nil && !f.identified {
		return nil
	}
	content, err := ContentOf(m.File)
	if err != nil {
		return err
	}
	weights, err := weightsOf(m.File, content)
	m.Kept = actors.Kept{Folder: f.kept, Weights: weights, Content: content, Build: build(), Key: f.stateKey}
	return err
}

// weightsOf tells a model from all others: by all bytes of its tensors, or, where the file is large, by the content
// that ContentOf found, and by the time at which it was written.
func weightsOf(file *gguf.File, content string) (string, error) {
	if file.Content() != "" { // its bytes are still to come
		return "of another machine: " + content, nil
	}
	total, timed := int64(0), true
	var files strings.Builder
	for i := range file.Parts() {
		part := file.Part(i)
		total += part.Size
		if timed = timed && part.Info != nil; timed {
			fmt.Fprintf(&files, " %d %d", part.Size, part.Info.ModTime().UnixNano())
		}
	}
	if timed && total > hashed {
		return content + files.String(), nil
	}
	sum := sha256.New()
	for i := range file.Tensors {
		if err := file.View(&file.Tensors[i], func(data []byte) error { sum.Write(data); return nil }); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s %x", content, sum.Sum(nil)), nil
}

// build tells this program from others that may compute otherwise: by its commit, or, if it was changed since, by its
// file.
func build() string {
	built := env.Built()
	if built != "" && !strings.Contains(built, ",") {
		return built
	}
	path, err := os.Executable()
	if err != nil {
		return built
	}
	info, err := os.Stat(path)
	if err != nil {
		return built
	}
	return fmt.Sprintf("%s %d %d", built, info.Size(), info.ModTime().UnixNano())
}
