package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/stages/route"
)

// Where members report to each other, and where one has another go on with an answer.
const (
	Path       = "/cluster/report"
	AnswerPath = "/cluster/answer"
)

// call tells a member what we are, and hears what it is.
func (c *Cluster) call(ctx context.Context, addr string, say *Report) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := json.Marshal(say)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+addr+Path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var said struct{ Error struct{ Message string } }
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		_ = json.Unmarshal(text, &said) // without words, the status has to do
		return fmt.Errorf("it answers %d: %.300s", answer.StatusCode, said.Error.Message)
	}
	is, err := ReadReport(answer.Body)
	if err != nil {
		return err
	}
	return c.Meet(is, pass.MemberOf(answer.TLS))
}

// Do sends a request to a member. Errors say why it is no member, if that is the reason.
func (c *Cluster) Do(q *http.Request) (*http.Response, error) {
	q.Host = "localhost" // any member serves this name
	answer, err := c.http.Do(q)
	if err != nil {
		return nil, c.Pass.Explain(err)
	}
	return answer, nil
}

// Goal is a member that a request goes to.
type Goal struct {
	Member, Addr string
	Gone         <-chan struct{} // closed when it is taken to have gone
}

// Send chooses a member for a request, none of not; nil is ourselves. If the cluster has nobody for it, that is
// ourselves too: then the answer says what we lack.
func (c *Cluster) Send(a *Ask, not []string) *Goal {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &route.Request{Model: a.Model, Keys: a.Keys, Block: blockTokens, Prompt: a.Prompt, Not: not}
	choice, err := c.table.Send(r)
	if err != nil || choice.Member == c.Pass.Member {
		c.remember(a)
		return nil
	}
	for addr, p := range c.peers {
		if p.member == choice.Member {
			return &Goal{p.member, addr, p.gone}
		}
	}
	return nil
}

// Took remembers a request that another member passed on to us.
func (c *Cluster) Took(a *Ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(a)
}

func (c *Cluster) remember(a *Ask) {
	if c.known[a.Model] == nil {
		if len(c.known) >= mostModels {
			return
		}
		c.known[a.Model] = &memory{}
	}
	c.known[a.Model].add(a.Keys)
}

// Failed says that a member did not answer: until it is heard of again, nothing goes there.
func (c *Cluster) Failed(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peers[addr]; p != nil && p.member != "" {
		c.lose(addr, p)
	}
}
