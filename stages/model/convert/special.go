package convert

import (
	"encoding/json"
	"fmt"
)

// specials are the tokens that have a key, in the order in which they are written, with the last part of the key.
// "seperator" is how GGUF spells it.
func specials() [][2]string {
	return [][2]string{{"bos", "bos"}, {"eos", "eos"}, {"unk", "unknown"}, {"sep", "seperator"}, {"pad", "padding"},
		{"mask", "mask"}}
}

// special writes which tokens begin, end and fill texts, whether they are added, and the chat template.
func (c *converter) special(t *tokenizer, settings object) error {
	wrap := t.wrapping()
	texts := map[string]string{}
	for _, s := range specials() {
		texts[s[0]] = tokenText(settings, s[0]+"_token")
	}
	cls := tokenText(settings, "cls_token")
	if texts["bos"] == "" {
		texts["bos"] = cls
	}
	if texts["eos"] == "" {
		texts["eos"] = texts["sep"]
	}
	adds := map[string]bool{}
	if wrap.first != "" {
		adds["bos"] = wrap.first == texts["bos"] || wrap.first == cls || texts["bos"] == ""
		if texts["bos"] == "" {
			texts["bos"] = wrap.first
		}
	}
	if wrap.last != "" {
		adds["eos"] = true
		texts["eos"] = wrap.last
	}
	if wrap.between {
		adds["sep"] = true
	}
	ids := map[string]int{}
	for _, a := range t.Added {
		if _, twice := ids[a.Content]; !twice {
			ids[a.Content] = a.ID
		}
	}
	written := map[string]bool{}
	for _, s := range specials() {
		if id, ok := ids[texts[s[0]]]; ok && texts[s[0]] != "" {
			c.specialID(s[1], id)
			written[s[0]] = true
		}
	}
	for _, s := range specials() {
		if n, ok := c.config.values[s[0]+"_token_id"].(json.Number); ok && !written[s[0]] {
			if id, err := n.Int64(); err == nil && id >= 0 && id < mostVocab {
				c.specialID(s[1], int(id))
			}
		}
	}
	for _, s := range specials() {
		add, ok := adds[s[0]]
		if value, set := settings.truth("add_" + s[0] + "_token"); set {
			add, ok = value, true
		}
		if ok {
			c.meta.Set("tokenizer.ggml.add_"+s[0]+"_token", add)
		}
	}
	return c.templates(settings)
}

func (c *converter) specialID(name string, id int) {
	c.meta.Set("tokenizer.ggml."+name+"_token_id", uint32(id))
}

// tokenText is the text of a token that a file names: a text, or an object with one.
func tokenText(settings object, key string) string {
	if text := settings.string(key); text != "" {
		return text
	}
	return settings.object(key).string("content")
}

// wrapping is the special tokens that a tokenizer puts around a text; "": none.
type wrapping struct {
	first, last string
	between     bool // the last one stands between two texts as well
}

// wrapping reads the post-processor: TemplateProcessing or RobertaProcessing, alone or in a sequence.
func (t *tokenizer) wrapping() wrapping {
	var w wrapping
	all, _ := t.PostProcessor["processors"].([]any)
	for _, p := range append(all, t.PostProcessor) {
		processor, _ := p.(map[string]any)
		switch processor["type"] {
		case "RobertaProcessing":
			w.first, w.last, w.between = firstText(processor["cls"]), firstText(processor["sep"]), true
		case "TemplateProcessing":
			single, _ := processor["single"].([]any)
			if len(single) > 1 {
				w.first, w.last = specialOf(single[0]), specialOf(single[len(single)-1])
			}
			pair, _ := processor["pair"].([]any)
			w.between = w.last != "" && len(pair) > len(single)+1 // [CLS] A [SEP] B [SEP]
		}
	}
	return w
}

func firstText(pair any) string {
	list, _ := pair.([]any)
	if len(list) == 0 {
		return ""
	}
	text, _ := list[0].(string)
	return text
}

// specialOf is the special token that an item of a template stands for; "" if it is none.
func specialOf(item any) string {
	outer, _ := item.(map[string]any)
	inner, _ := outer["SpecialToken"].(map[string]any)
	text, _ := inner["id"].(string)
	return text
}

// templates writes the chat template, or several with names.
func (c *converter) templates(settings object) error {
	v, _ := settings.get("chat_template")
	if v == nil && c.folder.Texts["chat_template.jinja"] != nil {
		v = string(c.folder.Texts["chat_template.jinja"])
	}
	if v == nil {
		o, err := parseObject("chat_template.json", c.folder.Texts["chat_template.json"])
		if err != nil {
			return err
		}
		v, _ = o.get("chat_template")
	}
	switch x := v.(type) {
	case string:
		c.meta.Set("tokenizer.chat_template", x)
	case []any:
		return c.namedTemplates(x)
	}
	return nil
}

func (c *converter) namedTemplates(list []any) error {
	var names []string
	for _, item := range list {
		entry, _ := item.(map[string]any)
		name, ok1 := entry["name"].(string)
		text, ok2 := entry["template"].(string)
		if !ok1 || !ok2 || len(name) > 100 {
			return fmt.Errorf("tokenizer_config.json: chat_template: %.80v is no template with a name", item)
		}
		if name == "default" {
			c.meta.Set("tokenizer.chat_template", text)
			continue
		}
		names = append(names, name)
		c.meta.Set("tokenizer.chat_template."+name, text)
	}
	if len(names) > 0 {
		c.meta.Set("tokenizer.chat_templates", names)
	}
	return nil
}
