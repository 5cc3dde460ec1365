package exchange

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"
)

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
				w.BreakOff()
			}
			return
		}
	})
	return nil
}
