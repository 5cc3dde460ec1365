package modelfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// Manner is how a model runs, as far as somebody has said so beside its file.
type Manner struct {
	Template   string // of prompts, in Jinja
	System     string // the message that conversations begin with which have none of that role
	Messages   []Message
	Licenses   []string
	Parameters Parameters
}

// Message is a message that is put in front of every conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Keys of the metadata that are ours. Those of sampling are llama.cpp's, and so is that of a template.
const (
	keySystem   = "sluice.system"
	keyMessages = "sluice.messages" // JSON
	keyStop     = "sluice.stop"
	keyPredict  = "sluice.num_predict"
	keyContext  = "sluice.num_ctx"
	keyTemplate = "tokenizer.chat_template"
)

// mostMessages bounds what is put in front of conversations.
const mostMessages = 256

// roles are the roles that such messages may have.
func roles() []string { return []string{"system", "user", "assistant"} }

// ParseMessages reads messages from a list of JSON.
func ParseMessages(text string) ([]Message, error) {
	var all []Message
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf(`messages: want a list such as [{"role": "user", "content": "..."}]: %w`, err)
	}
	if len(all) > mostMessages {
		return nil, fmt.Errorf("messages has %d entries: want at most %d", len(all), mostMessages)
	}
	for i, m := range all {
		if !slices.Contains(roles(), m.Role) {
			return nil, fmt.Errorf("messages[%d].role is %.40q: want one of %s", i, m.Role, strings.Join(roles(), ", "))
		}
	}
	return all, nil
}

// MessagesJSON is the messages as ParseMessages reads them.
func (m *Manner) MessagesJSON() []byte {
	text, _ := json.Marshal(m.Messages) // they are texts
	return text
}

// Over returns the manner with what it leaves open taken from another one, part by part and parameter by parameter.
func (m *Manner) Over(other *Manner) *Manner {
	all := *other
	if m.Template != "" {
		all.Template = m.Template
	}
	if m.System != "" {
		all.System = m.System
	}
	if m.Messages != nil {
		all.Messages = m.Messages
	}
	if m.Licenses != nil {
		all.Licenses = m.Licenses
	}
	all.Parameters = m.Parameters.Over(other.Parameters)
	return &all
}

// Apply puts a manner into the metadata of a model's file.
func (m *Manner) Apply(to *meta.Map) {
	m.Parameters.apply(to)
	if m.System != "" {
		to.Set(keySystem, m.System)
	}
	if len(m.Messages) > 0 {
		to.Set(keyMessages, string(m.MessagesJSON()))
	}
	if m.Template != "" {
		to.Set(keyTemplate, m.Template)
	}
}

// Settings are the parts of a manner that are neither parameters of sampling nor the template: packages sample and
// chat read those.
type Settings struct {
	System   string
	Messages string   // JSON; "": there are none
	Stop     []string // of requests that name none
	Predict  int      // tokens of an answer where the request sets no bound; 0: none
	Context  int      // tokens of a conversation; 0: nobody has said
}

// Of reads the settings from a model's metadata.
func Of(m *meta.Map) (s Settings) {
	s.System, _ = m.String(keySystem)
	s.Messages, _ = m.String(keyMessages)
	s.Stop, _ = m.Strings(keyStop)
	predict, _ := m.Int(keyPredict)
	s.Predict = max(int(predict), 0)
	context, _ := m.Int(keyContext)
	s.Context = max(int(context), 0)
	return s
}

// MannerOf reads from a model's metadata how it runs, whoever has said so: its file, or what stands beside it.
func MannerOf(m *meta.Map) *Manner {
	s := Of(m)
	all := &Manner{System: s.System}
	all.Template, _ = m.String(keyTemplate)
	if s.Messages != "" {
		all.Messages, _ = ParseMessages(s.Messages) // they were written by MessagesJSON
	}
	for _, r := range rules() {
		if x, err := m.Float(r.key); err == nil {
			_ = all.Parameters.set(r.name, x) // a number that means nothing is left out
		}
	}
	if len(s.Stop) > 0 {
		_ = all.Parameters.set(stopName, 0, s.Stop...)
	}
	return all
}
