package llamacpp

import (
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/exchange"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// texts is a decoded request to tokenize.
type texts struct {
	model          *answer.Model
	parts          []answer.Text
	special, parse bool
	pieces         bool // the texts of tokens are wanted, beside their ids
}

// tokenize serves POST /tokenize.
func (a *api) tokenize(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	o, fault := decodeTexts(body, a.finder(x, answer.Tell))
	if fault != nil {
		return fault
	}
	ids, fault := a.Tokens(x, o.model, o.parts, o.special, o.parse)
	if fault != nil {
		return fault
	}
	x.Prompt = len(ids)
	x.Whole(rc, "application/json", o.spell(ids))
	return nil
}

func decodeTexts(body answer.Body, find decode.Finder) (texts, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return texts{}, in.Fault
	}
	f, o := fields{in}, texts{model: m, parse: true}
	f.Flag("add_special", &o.special)
	f.Flag("parse_special", &o.parse)
	f.Flag("with_pieces", &o.pieces)
	if raw, ok := f.Get("content"); ok && raw != "[]" {
		o.parts = f.Inputs("content", answer.MaxTexts, m)
	}
	return o, f.Fault
}

// spell yields the tokens as JSON, some at a time.
func (o *texts) spell(ids []int32) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		dst := []byte(`{"tokens":[`)
		for some := range slices.Chunk(ids, 512) {
			for _, id := range some {
				dst = append(o.token(dst, id), ',')
			}
			if !yield(dst[:len(dst)-1]) {
				return
			}
			dst = append(dst[:0], ',')
		}
		if len(ids) > 0 {
			dst = dst[:0]
		}
		yield(append(dst, "]}"...))
	}
}

// token appends an id, or an object with the id and its text: a string, or bytes if it is not UTF-8.
func (o *texts) token(dst []byte, id int32) []byte {
	if !o.pieces {
		return strconv.AppendInt(dst, int64(id), 10)
	}
	dst = strconv.AppendInt(append(dst, `{"id":`...), int64(id), 10)
	dst = append(dst, `,"piece":`...)
	piece := o.model.Engine.Vocab().Piece(id)
	if utf8.Valid(piece) {
		return append(wire.AppendString(dst, piece), '}')
	}
	dst = append(dst, '[')
	for i, b := range piece {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(b), 10)
	}
	return append(dst, "]}"...)
}

// detokenize serves POST /detokenize.
func (a *api) detokenize(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	m, ids, fault := decodeTokens(body, a.finder(x, answer.Tell))
	if fault != nil {
		return fault
	}
	text := m.Engine.Vocab().Decode(nil, ids, true)
	x.Whole(rc, "application/json", slices.Values([][]byte{append(wire.AppendString([]byte(`{"content":`), text), '}')}))
	return nil
}

func decodeTokens(body answer.Body, find decode.Finder) (*answer.Model, []int32, *wire.Fault) {
	in, m := decode.Read(body, find)
	if m == nil {
		return nil, nil, in.Fault
	}
	raw, ok := in.Get("tokens")
	if !ok || raw == "[]" {
		return m, nil, in.Fault
	}
	parts := in.Inputs("tokens", 1, m)
	if in.Fault == nil && (len(parts) != 1 || parts[0].Tokens == nil) {
		in.Wrong("tokens", raw, "a list of token ids")
	}
	if in.Fault != nil {
		return nil, nil, in.Fault
	}
	return m, parts[0].Tokens, nil
}

// applyTemplate serves POST /apply-template.
func (a *api) applyTemplate(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	body, fault := a.Body(rc, x)
	if fault != nil {
		return fault
	}
	m, in, fault := decodeConversation(body, a.finder(x, answer.Tell))
	if fault != nil {
		return fault
	}
	prompt, fault := a.Render(x, m, in)
	if fault != nil {
		return fault
	}
	x.Whole(rc, "application/json", slices.Values([][]byte{append(wire.AppendString([]byte(`{"prompt":`), prompt), '}')}))
	return nil
}

func decodeConversation(body answer.Body, find decode.Finder) (*answer.Model, *chat.Input, *wire.Fault) {
	f, m := decode.Read(body, find)
	if m == nil {
		return nil, nil, f.Fault
	}
	in := f.Conversation(m)
	f.Tools(in)
	return m, in, f.Fault
}

// properties is the body of GET /props.
type properties struct {
	Settings   defaults        `json:"default_generation_settings"`
	Slots      int             `json:"total_slots"` // answers that are computed at once
	Alias      string          `json:"model_alias"`
	Path       string          `json:"model_path"` // its name: clients are not told where files lie
	Template   string          `json:"chat_template"`
	BOS        string          `json:"bos_token"`
	EOS        string          `json:"eos_token"`
	Modalities map[string]bool `json:"modalities"`
	Build      string          `json:"build_info"`
}

type defaults struct {
	Context int      `json:"n_ctx"`
	Params  settings `json:"params"`
}

// props serves GET /props for the model that the query names.
func (a *api) props(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	m, fault := a.AskedTo(x, answer.Tell, string(rc.QueryArgs().Peek("model")))
	if fault != nil {
		return fault
	}
	template, _ := chat.Own(m.Engine.Metadata())
	v := m.Engine.Vocab()
	wire.WriteJSON(rc, properties{
		defaults{m.Context, settingsOf(&m.Sampling, 0)}, m.Engine.Info.Sequences, m.Name, m.Name, template, v.BOSText(),
		v.EOSText(), map[string]bool{"vision": m.Habits.Sees, "audio": false}, "sluice",
	})
	return nil
}

// slot is llama-server's word for a place where an answer is computed. Here answers share the cache by prompt
// prefixes, so any answer takes any slot: slots in use are listed first, and none keeps a prompt.
type slot struct {
	ID          int  `json:"id"`
	Task        int  `json:"id_task"`
	Context     int  `json:"n_ctx"`
	Speculative bool `json:"speculative"`
	Busy        bool `json:"is_processing"`
}

// slots serves GET /slots for the model that the query names. With fail_on_no_slot it is an error if all are taken.
func (a *api) slots(rc *fasthttp.RequestCtx, x *exchange.Exchange) *wire.Fault {
	m, fault := a.AskedTo(x, answer.Tell, string(rc.QueryArgs().Peek("model")))
	if fault != nil {
		return fault
	}
	all, busy := make([]slot, m.Engine.Info.Sequences), int(m.Engine.Snapshot().Running)
	if busy >= len(all) && len(rc.QueryArgs().Peek("fail_on_no_slot")) > 0 {
		return wire.Refused(fasthttp.StatusServiceUnavailable, "unavailable", "all %d slots are taken: ask again later", len(all))
	}
	for i := range all {
		all[i] = slot{ID: i, Task: -1, Context: m.Context, Busy: i < busy}
	}
	wire.WriteJSON(rc, all)
	return nil
}
