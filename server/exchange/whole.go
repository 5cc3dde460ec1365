package exchange

import (
	"iter"

	"github.com/valyala/fasthttp"
)

// atOnce is the size in bytes up to which a body is made whole before it is sent.
const atOnce = 64 << 10

// Whole answers with a body of a Content-Type, made of pieces in order, each valid until the next. A body larger than
// atOnce is streamed, and made only as fast as the client reads it: pieces is then iterated a second time, from the
// beginning. If the Context ends, the iteration stops and the connection is closed.
func (x *Exchange) Whole(rc *fasthttp.RequestCtx, media string, pieces iter.Seq[[]byte]) {
	body := make([]byte, 0, 4<<10)
	small := true
	for piece := range pieces {
		body = append(body, piece...)
		if small = len(body) <= atOnce; !small {
			break
		}
	}
	if small {
		rc.SetContentType(media)
		rc.SetBody(body)
		return
	}
	x.Stream(rc, media, nil, func(w *Writer) {
		body = body[:0]
		for piece := range pieces {
			body = append(body, piece...)
			if len(body) < atOnce {
				continue
			}
			if w.Send(body) != nil || x.Context.Err() != nil {
				w.BreakOff()
				return
			}
			body = body[:0]
		}
		if w.Send(body) != nil {
			w.BreakOff()
		}
	})
}
