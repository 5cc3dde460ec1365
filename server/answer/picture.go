package answer

import (
	"fmt"

	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/fetch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/picture"
)

// pictured is the memory that decoding the pictures of an order takes, by their headers. A picture that says too much
// is refused when the prompt is made.
func pictured(o *Order) (bytes int64) {
	for i := range o.Prompts {
		bytes += decoded(o.Prompts[i].Shown)
		if in := o.Prompts[i].Chat; in != nil {
			for j := range in.Messages {
				bytes += decoded(in.Messages[j].Parts)
			}
		}
	}
	return bytes
}

// decoded is the memory that decoding the pictures among parts takes.
func decoded(parts []chat.Part) (bytes int64) {
	for i := range parts {
		if p := parts[i].Picture; p != nil {
			if said, err := picture.Inspect(p.Data); err == nil {
				bytes += said.Bytes
			}
		}
	}
	return bytes
}

// mostFetched bounds the pictures that one request has fetched.
const mostFetched = 8

// fetching gets pictures for a request, which pays for them as for its body.
func (s *Service) fetching(x *exchange.Exchange) Fetch {
	fetched, bytes := 0, int64(0)
	return func(url string) ([]byte, error) {
		if fetched++; fetched > mostFetched {
			return nil, fmt.Errorf("more than %d pictures are to be fetched: send the others themselves", mostFetched)
		}
		if bytes == 0 {
			if bytes = fetch.Most; x.Bring(bytes) != nil {
				return nil, exchange.ErrCrowded
			}
		}
		data, err := s.Fetch(x.Context, url)
		if bytes -= int64(len(data)); err == nil && bytes < 0 {
			err = fmt.Errorf("the pictures that are to be fetched have more than %d MB together", fetch.Most>>20)
		}
		bytes = max(bytes, 1)
		return data, err
	}
}
