package weights

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/chat"
)

// How much of a value is shown in a line.
const (
	mostShown = 60 // characters of a text
	mostItems = 6  // of an array
)

// printMetadata shows a model's metadata: the most useful keys first, then all in file order.
func printMetadata(w io.Writer, m *meta.Map) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range telling(m) {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	fmt.Fprintln(t)
	for _, key := range m.Keys() {
		v, _ := m.Get(key)
		fmt.Fprintf(t, "%s\t%s\n", env.Printable(key), valueText(v))
	}
	return t.Flush()
}

// telling are the rows for the most useful keys; keys that the file lacks are left out.
func telling(m *meta.Map) (rows [][2]string) {
	arch, _ := m.String("general.architecture")
	number := func(key string) (string, bool) {
		v, ok := m.Get(arch + "." + key)
		return valueText(v), ok
	}
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, [2]string{name, text})
		}
	}
	parts := func(pairs ...string) string { // format and key in turn
		var said []string
		for i := 0; i < len(pairs); i += 2 {
			if n, ok := number(pairs[i+1]); ok {
				said = append(said, fmt.Sprintf(pairs[i], n))
			}
		}
		return strings.Join(said, ", ")
	}
	add("layers", parts("%s", "block_count"))
	add("width", parts("%s", "embedding_length", "feed-forward %s", "feed_forward_length"))
	add("heads", parts("%s", "attention.head_count", "%s of K and V", "attention.head_count_kv", "%s values each",
		"attention.key_length", "window of %s", "attention.sliding_window"))
	add("rope", parts("base %s", "rope.freq_base", "%s values", "rope.dimension_count", "scaled by %s", "rope.scaling.type",
		"factor %s", "rope.scaling.factor", "of %s positions", "rope.scaling.original_context_length"))
	add("experts", parts("%s", "expert_count", "%s at a time", "expert_used_count", "%s shared", "expert_shared_count",
		"feed-forward %s", "expert_feed_forward_length"))
	license, _ := m.String("general.license")
	link, _ := m.String("general.license.link")
	add("licence", env.Printable(cmp.Or(license, link)))
	if text, err := chat.Own(m); err == nil && text != "" {
		add("template", fmt.Sprintf("%s: sluice template shows it", env.Count(utf8.RuneCountInString(text), "character")))
	}
	return rows
}

// valueText shows a value in a line.
func valueText(v any) string {
	switch x := v.(type) {
	case string:
		if runes := []rune(x); len(runes) > mostShown {
			return fmt.Sprintf("%q… (%s)", string(runes[:mostShown]), env.Count(len(runes), "character"))
		}
		return env.Printable(x)
	case []string:
		return listText(x, func(s string) string { return fmt.Sprintf("%q", s) })
	case []any:
		return env.Count(len(x), "array")
	case []bool:
		return listText(x, show[bool])
	case []float32:
		return listText(x, show[float32])
	case []float64:
		return listText(x, show[float64])
	case []uint8:
		return listText(x, show[uint8])
	case []int8:
		return listText(x, show[int8])
	case []uint16:
		return listText(x, show[uint16])
	case []int16:
		return listText(x, show[int16])
	case []uint32:
		return listText(x, show[uint32])
	case []int32:
		return listText(x, show[int32])
	case []uint64:
		return listText(x, show[uint64])
	case []int64:
		return listText(x, show[int64])
	}
	return fmt.Sprint(v)
}

func show[T any](v T) string { return fmt.Sprint(v) }

// listText shows the first items of an array, and how many there are.
func listText[T any](list []T, text func(T) string) string {
	var shown []string
	for _, v := range list[:min(len(list), mostItems)] {
		shown = append(shown, text(v))
	}
	if len(list) > mostItems {
		return fmt.Sprintf("[%s, …] (%d)", strings.Join(shown, ", "), len(list))
	}
	return "[" + strings.Join(shown, ", ") + "]"
}

// metadataJSON is the metadata as an object; long arrays and texts are shortened as in a line.
func metadataJSON(m *meta.Map) map[string]any {
	all := map[string]any{}
	for _, key := range m.Keys() {
		v, _ := m.Get(key)
		switch v.(type) {
		case string, bool, float32, float64, uint8, int8, uint16, int16, uint32, int32, uint64, int64:
			all[key] = v
		default:
			all[key] = valueText(v)
		}
	}
	return all
}
