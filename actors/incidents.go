package actors

import (
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/storage/incidents"
)

// incidentSink keeps a tape in a folder of which the oldest goes.
type incidentSink struct {
	folder  *incidents.Folder
	log     zerolog.Logger
	failing bool // the log has it
}

// KeepIncidents starts a tape, without texts, that goes to a folder.
func KeepIncidents(folder *incidents.Folder, log zerolog.Logger) *Tape {
	return NewTape(&incidentSink{folder: folder, log: log.With().Str("folder", folder.Path()).Logger()}, false)
}

// Append implements TapeSink. The log has the first failure after writing worked, and that it works again.
func (s *incidentSink) Append(records []byte, head func() []byte) {
	err := s.folder.Append(records, head, now())
	if err != nil {
		s.fail(err)
		return
	}
	if s.failing {
		s.failing = false
		s.log.Info().Msg("incidents are recorded again")
	}
}

// Lost implements TapeSink.
func (s *incidentSink) Lost(why error) {
	s.folder.Part()
	s.fail(why)
}

// Close lets others use the folder.
func (s *incidentSink) Close() { s.folder.Close() }

func (s *incidentSink) fail(err error) {
	if !s.failing {
		s.failing = true
		s.log.Warn().Err(err).Msg("what models do cannot be recorded: requests are answered all the same")
	}
}
