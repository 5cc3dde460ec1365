package exchange

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/wire"
)

// Arrive reads the body ahead of Receive, which then returns it. The exchange is charged for it until Release.
func (x *Exchange) Arrive(rc *fasthttp.RequestCtx, in *Intake, patience time.Duration) (string, *wire.Fault) {
	length := rc.Request.Header.ContentLength()
	x.intake = in
	if length > in.most {
		return "", in.tooLarge()
	}
	if x.complete {
		return "", nil
	}
	body, fault := x.read(rc.RequestBodyStream(), length, patience)
	if fault != nil {
		return "", fault
	}
	x.arrive()
	x.given = &body
	return body, nil
}

// Relay answers with what another server answers, as it comes; end is called when no more is wanted of that. An answer
// of a known, small length is read whole first: if that fails, nothing was sent, and the error is returned. One that
// breaks off later breaks off here, so that no client takes it for complete.
func (x *Exchange) Relay(rc *fasthttp.RequestCtx, media string, length int64, from io.ReadCloser, end func()) error {
	if length >= 0 && length <= atOnce {
		defer end()
		defer from.Close()
		body, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		x.Release()
		rc.SetContentType(media)
		rc.SetBody(body)
		return nil
	}
	x.Release()
	x.Stream(rc, media, nil, func(w *Writer) {
		defer end()
		defer from.Close()
		for buffer := make([]byte, 16<<10); ; {
			n, err := from.Read(buffer)
			if n > 0 && w.Send(buffer[:n]) != nil {
				err = ErrGone
			}
			switch {
			case err == nil:
				continue
			case !errors.Is(err, io.EOF):
				x.breakOff()
			}
			return
		}
	})
	return nil
}
