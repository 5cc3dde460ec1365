package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/server/cluster"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
)

const (
	mostLent  = 64       // ranges that are lent at once
	lentPiece = 64 << 10 // bytes that are read and sent at a time
)

// lend answers a member that reads the files of a model: what they are, or bytes of one.
func (s *Server) lend(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	if s.member(rc) == "" {
		return notFound(rc, x)
	}
	query := rc.QueryArgs()
	model, content := string(query.Peek("model")), string(query.Peek("content"))
	e := s.models.Engine(model)
	if e == nil {
		return wire.Refused(fasthttp.StatusNotFound, "model", "model %.80q does not run here", model)
	}
	files, is := e.Lent()
	switch {
	case is == "" || len(files.Parts) == 0:
		return wire.Refused(fasthttp.StatusNotFound, "model", "model %.80q is of no GGUF files: others are not lent", model)
	case content == "":
		told := &cluster.Weights{Content: is}
		for i := range files.Parts {
			told.Parts = append(told.Parts, cluster.WeightsPart{Bytes: files.Parts[i].Size, Head: files.Heads[i]})
		}
		text, err := json.Marshal(told)
		if err != nil {
			return wire.Refused(fasthttp.StatusInternalServerError, "internal", "%v", err)
		}
		rc.SetContentType("application/json")
		rc.SetBody(text)
		return nil
	case content != is:
		return wire.Refused(fasthttp.StatusConflict, "content", "model %.80q is another one by now: it is %s, and not %.80s",
			model, is, content)
	}
	part, err := strconv.Atoi(string(query.Peek("part")))
	if err != nil || part < 0 || part >= len(files.Parts) {
		return wire.Refused(fasthttp.StatusBadRequest, "part", "part is %.80q: want 0 to %d", query.Peek("part"),
			len(files.Parts)-1)
	}
	from := &files.Parts[part]
	at, n, err := cluster.ParseRange(string(rc.Request.Header.Peek("Range")), from.Size)
	if err != nil {
		return wire.Refused(fasthttp.StatusRequestedRangeNotSatisfiable, "range", "%v", err)
	}
	return s.lendRange(rc, x, from, at, n)
}

// lendRange answers with bytes of a file and their checksum. A file that has changed breaks off.
func (s *Server) lendRange(rc *fasthttp.RequestCtx, x *exchange.Exchange, from *source.Source,
	at, n int64) *wire.Fault {
	if s.loans.Add(1) > mostLent {
		s.loans.Add(-1)
		return wire.Unavailable("busy", "%d ranges are lent already: ask again", mostLent)
	}
	file, err := openLent(from)
	if err != nil {
		s.loans.Add(-1)
		return wire.Refused(fasthttp.StatusConflict, "content", "the file cannot be lent: %v", err)
	}
	rc.SetStatusCode(fasthttp.StatusPartialContent)
	x.Release()
	x.Sized(rc, "application/octet-stream", int(n)+cluster.SumBytes, func(w *exchange.Writer) error {
		err := pourRange(w, file, from, at, n)
		if err != nil && x.Context.Err() == nil {
			x.Log.Warn().Err(err).Str("file", from.Name).Msg("lending of a file breaks off")
		}
		return err
	}, func() {
		s.loans.Add(-1)
		file.Close()
	})
	return nil
}

func pourRange(w *exchange.Writer, file *lentFile, from *source.Source, at, n int64) error {
	sum, buffer := uint32(0), make([]byte, lentPiece)
	for end := at + n; at < end; {
		b := buffer[:min(lentPiece, end-at)]
		if _, err := file.ReadAt(b, at); err != nil {
			return fmt.Errorf("bytes from %d on: %w", at, err)
		}
		sum = cluster.Sum(sum, b)
		if err := w.Send(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	if err := file.check(from); err != nil { // before it is told that the bytes are right
		return err
	}
	return w.Send(binary.LittleEndian.AppendUint32(nil, sum))
}

// lendSession answers a member that restores a session which is saved here.
func (s *Server) lendSession(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	query := rc.QueryArgs()
	model, owner, name := string(query.Peek("model")), string(query.Peek("owner")), string(query.Peek("name"))
	if s.member(rc) == "" || s.options.Sessions == nil {
		return notFound(rc, x)
	}
	e := s.models.Engine(model)
	if e == nil {
		return wire.Refused(fasthttp.StatusNotFound, "model", "model %.80q does not run here", model)
	}
	if s.loans.Add(1) > mostLent {
		s.loans.Add(-1)
		return wire.Unavailable("busy", "%d ranges are lent already: ask again", mostLent)
	}
	begun, size, passed := make(chan *exchange.Writer), make(chan int64), make(chan error, 1)
	go func() {
		passed <- s.options.Sessions.Lend(e, owner, name, func(bytes int64) (io.Writer, error) {
			size <- bytes
			if w := <-begun; w != nil {
				return toMember{w}, nil
			}
			return nil, exchange.ErrGone
		})
	}()
	select {
	case err := <-passed:
		s.loans.Add(-1)
		if errors.Is(err, actors.ErrSessionMissing) {
			return wire.Refused(fasthttp.StatusNotFound, "session", "%v", err)
		}
		return wire.Refused(fasthttp.StatusConflict, "session", "%v", err)
	case bytes := <-size:
		x.Release()
		x.Sized(rc, "application/octet-stream", int(bytes), func(w *exchange.Writer) error {
			begun <- w
			return <-passed
		}, func() {
			close(begun)
			s.loans.Add(-1)
		})
		return nil
	}
}

// toMember writes to a member.
type toMember struct{ to *exchange.Writer }

func (s toMember) Write(b []byte) (int, error) {
	if err := s.to.Send(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// lentFile reads a source: a file, memory, or what another machine has.
type lentFile struct {
	io.ReaderAt
	check func(*source.Source) error
	close func() error
}

func (f *lentFile) Close() {
	if f.close != nil {
		_ = f.close() // it was only read
	}
}

// openLent opens a source whose bytes have to be those that the model was loaded from.
func openLent(from *source.Source) (*lentFile, error) {
	same := func(*source.Source) error { return nil }
	switch {
	case from.Far():
		return &lentFile{ReaderAt: from.Remote, check: same}, nil
	case from.Path == "":
		return &lentFile{ReaderAt: bytes.NewReader(from.Data), check: same}, nil
	}
	file, info, err := safefile.Open(from.Path)
	if err != nil {
		return nil, err
	}
	if err := from.Check(info); err != nil {
		_ = file.Close() // the first error says more
		return nil, err
	}
	check := func(from *source.Source) error {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		return from.Check(info)
	}
	return &lentFile{file, check, file.Close}, nil
}
