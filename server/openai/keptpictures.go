package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/exchange"
)

// Limits of the pictures that conversations show, in bytes. Smaller ones stay in the conversation's text.
const (
	mostPictures = 64 << 20
	mostShown    = mostPictures / 2 // in one conversation; one that shows more is not kept
	leastKept    = 4 << 10          // of a picture's URL
)

// keptScheme begins the name of a kept picture, which stands in stored items in place of its data: URL.
const keptScheme = "kept:"

// keptPicture is a picture that an owner's conversations show.
type keptPicture struct {
	head string // of its data: URL, up to the data
	data []byte
	in   int // conversations
}

// url is what the client has sent, or the same in another spelling.
func (p *keptPicture) url() string { return p.head + base64.StdEncoding.EncodeToString(p.data) }

// pictureOf decodes a data: URL, as JSON has it.
func pictureOf(url string) (p *keptPicture, name string) {
	url = strings.ReplaceAll(url, `\/`, "/")
	head, text, ok := strings.Cut(url, ",")
	if !ok || len(url) < leastKept || !strings.HasPrefix(strings.ToLower(head), "data:") {
		return nil, ""
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || strings.Contains(head, `\`) {
		return nil, ""
	}
	sum := sha256.Sum256(data)
	return &keptPicture{head: strings.Clone(head) + ",", data: data}, hex.EncodeToString(sum[:])
}

// withPictures returns items, as JSON, with other addresses of the pictures in them.
func withPictures(items string, as func(url string) string) string {
	const key = `"image_url"`
	var b strings.Builder
	for {
		at := strings.Index(items, key)
		if at < 0 {
			break
		}
		at += len(key)
		rest := strings.TrimLeft(items[at:], " \t\r\n:")
		b.WriteString(items[:at])
		items = items[at:]
		url, after, ok := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		if ok && strings.HasPrefix(rest, `"`) {
			b.WriteString(`:"` + as(url) + `"`)
			items = after
		}
	}
	b.WriteString(items)
	return b.String()
}

// apart names the large pictures in items, and returns those that came as data, and the names of all.
func apart(items string) (text string, sent map[string]*keptPicture, names []string) {
	sent, seen := map[string]*keptPicture{}, map[string]bool{}
	text = withPictures(items, func(url string) string {
		name, kept := strings.CutPrefix(url, keptScheme)
		if !kept {
			p, of := pictureOf(url)
			if p == nil {
				return url
			}
			name, sent[of] = of, p
		}
		if !seen[name] {
			seen[name], names = true, append(names, strings.Clone(name))
		}
		return keptScheme + name
	})
	return text, sent, names
}

// pictureKey is a picture of an owner.
type pictureKey struct{ owner, name string }

// show counts a conversation among those that show pictures, and reports whether all are there.
func (c *conversations) show(talk *conversation, sent map[string]*keptPicture) bool {
	bytes := 0
	for _, name := range talk.shows {
		p := c.pictures[pictureKey{talk.owner, name}]
		if p == nil {
			p = sent[name]
		}
		if p == nil {
			return false
		}
		bytes += len(p.data)
	}
	if bytes > mostShown {
		return false
	}
	for _, name := range talk.shows {
		at := pictureKey{talk.owner, name}
		if c.pictures[at] == nil {
			c.pictures[at] = sent[name]
			c.shown.add(talk.owner, len(sent[name].data)+aroundItems)
		}
		c.pictures[at].in++
	}
	return true
}

// hide is the end of show.
func (c *conversations) hide(talk *conversation) {
	for _, name := range talk.shows {
		at := pictureKey{talk.owner, name}
		p := c.pictures[at]
		if p.in--; p.in == 0 {
			delete(c.pictures, at)
			c.shown.add(talk.owner, -len(p.data)-aroundItems)
		}
	}
}

// picture is the data of an owner's picture.
func (c *conversations) picture(name, owner string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pictures[pictureKey{owner, name}]
	if p == nil {
		return nil, false
	}
	return p.data, true
}

// whole is find with the pictures where their names stand; "" if that is more than one conversation may have.
func (c *conversations) whole(id, owner string) string {
	items, _ := c.find(id, owner)
	left := mostConversation - len(items)
	items = withPictures(items, func(url string) string {
		name, kept := strings.CutPrefix(url, keptScheme)
		if !kept || left < 0 {
			return url
		}
		c.mu.Lock()
		p := c.pictures[pictureKey{owner, name}]
		c.mu.Unlock()
		if p == nil {
			left = -1
			return url
		}
		if left -= base64.StdEncoding.EncodedLen(len(p.data)); left < 0 {
			return url
		}
		return p.url()
	})
	if left < 0 {
		return ""
	}
	return items
}

var errKeptNoMore = errors.New("the picture is kept no more: send the whole conversation as input")

// shownBefore finds pictures that conversations of the exchange's client show. It pays for them as for its body.
func (a *api) shownBefore(x *exchange.Exchange) answer.Fetch {
	return func(name string) ([]byte, error) {
		data, ok := a.past.picture(name, x.Client)
		if !ok {
			return nil, errKeptNoMore
		}
		return data, x.Bring(int64(len(data)))
	}
}
