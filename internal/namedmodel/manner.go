package namedmodel

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/storage/store"
)

// fitting adapts a manner to a model's file. A template of Ollama's registry, which lies beside the file, is used only
// if the file has none of its own.
func fitting(m *modelfile.Manner, file *meta.Map) *modelfile.Manner {
	said := *m
	jinja, err := chat.FromOllama(m.Template)
	own, _ := chat.Own(file)
	if said.Template = jinja; err != nil || jinja != m.Template && own != "" {
		said.Template = ""
	}
	return &said
}

// MannerOf reads the settings of a model of the store.
func MannerOf(s *store.Store, m *store.Manifest) (*modelfile.Manner, error) {
	return mannerOf(m.Name, func(role store.Role) ([]string, error) { return s.Texts(m, role) })
}

// mannerOf reads the settings of a model from the texts beside its weights, by their roles.
func mannerOf(name string, read func(store.Role) ([]string, error)) (*modelfile.Manner, error) {
	manner := &modelfile.Manner{}
	texts := map[store.Role][]string{}
	for _, role := range []store.Role{store.Template, store.System, store.Params, store.Messages, store.License} {
		var err error
		if texts[role], err = read(role); err != nil {
			return nil, err
		}
	}
	first := func(role store.Role) string {
		if len(texts[role]) == 0 {
			return ""
		}
		return texts[role][0]
	}
	manner.Template, manner.System, manner.Licenses = first(store.Template), first(store.System), texts[store.License]
	manner.Parameters = modelfile.KnownParameters(first(store.Params))
	var err error
	if text := first(store.Messages); text != "" {
		manner.Messages, err = modelfile.ParseMessages(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return manner, nil
}
