package exchange

import (
	"iter"

	"github.com/valyala/fasthttp"
)

// atOnce is how much of a body is made at a time. A smaller one is sent as it is.
const atOnce = 64 << 10

// Whole answers with a body of a Content-Type whose pieces come in order, each of them good until the next. A large one
// is made while it is read, and no further than the client reads: it is asked for its pieces once more, from the
// beginning. If the Context ends, so does the making, and the connection breaks off.
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
				x.breakOff()
				return
			}
			body = body[:0]
		}
		if w.Send(body) != nil {
			x.breakOff()
		}
	})
}
