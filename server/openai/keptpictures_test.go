package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/stages/chat"
)

// photograph is a picture's data: URL, and what is in it.
func photograph(seed byte, size int) (url string, data []byte) {
	data = bytes.Repeat([]byte{seed, 255, 62 << 2}, size/3)
	return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(data), data
}

func showing(urls ...string) string {
	var all []string
	for _, url := range urls {
		all = append(all, `{"type":"input_image","image_url" : "`+url+`"}`)
	}
	return `{"role":"user","content":[` + strings.Join(all, ",") + `]}`
}

// TestKeptPictures: a conversation is kept with pictures that are longer than it may be, each once however many
// conversations show it, and its owner alone finds them; with the last conversation they go.
func TestKeptPictures(t *testing.T) {
	c := &conversations{}
	url, data := photograph(7, 2*mostConversation)
	require.True(t, c.begin("1", "me", showing(url, url)))
	c.end("1", []byte(`2`))
	before, ok := c.find("1", "me")
	require.True(t, ok)
	require.Less(t, len(before), 400)
	require.Len(t, c.pictures, 1)
	require.Equal(t, len(data)+aroundItems, c.shown.bytes)
	require.Empty(t, c.whole("1", "me"), "too long for a file")

	name := before[strings.Index(before, keptScheme)+len(keptScheme):][:64]
	got, ok := c.picture(name, "me")
	require.True(t, ok)
	require.Equal(t, data, got)
	_, ok = c.picture(name, "you")
	require.False(t, ok)
	require.False(t, c.begin("2", "you", before), "another's pictures are not there")

	escaped := strings.ReplaceAll(url, "/", `\/`)
	require.True(t, c.begin("2", "me", before+","+showing(escaped)))
	require.Equal(t, len(data)+aroundItems, c.shown.bytes)
	require.True(t, c.forget("1", "me"))
	_, ok = c.picture(name, "me")
	require.True(t, ok, "the second one shows it")
	c.drop("2")
	require.Empty(t, c.pictures)
	require.Equal(t, room{owned: map[string]int{}}, c.shown)
	require.False(t, c.begin("3", "me", before), "it is kept no more")

	text := showing("https://a/b.png", "data:image/png;base64,cGlj", strings.Replace(url, "base64,", "base64,!", 1)[:leastKept+9])
	require.True(t, c.begin("4", "me", text))
	c.end("4", []byte(`2`))
	before, _ = c.find("4", "me")
	require.JSONEq(t, "["+text+",2]", "["+before+"]", "what is short, or no picture, stays")
}

// TestKeptPicturesInFiles: what is written to a file has pictures themselves, as they came.
func TestKeptPicturesInFiles(t *testing.T) {
	c := &conversations{}
	url, _ := photograph(7, 9000)
	text := showing(url, "data:image/png;base64,cGlj") + `,{"role":"user","content":"\"image_url\":\"data:x"}`
	require.True(t, c.begin("1", "me", text))
	c.end("1", []byte(`{}`))
	require.JSONEq(t, "["+text+",{}]", "["+c.whole("1", "me")+"]")
	require.Empty(t, c.whole("1", "you"))
}

// TestPicturesOfOthers: who shows pictures without end drives out its own conversations, and of these those with
// pictures alone; no conversation may show more than its share.
func TestPicturesOfOthers(t *testing.T) {
	c := &conversations{}
	store := func(id, owner string, sizes ...int) bool {
		talk, sent := &conversation{id: id, owner: owner}, map[string]*keptPicture{}
		for i, n := range sizes {
			name := fmt.Sprint(id, i)
			talk.shows, sent[name] = append(talk.shows, name), &keptPicture{data: make([]byte, n)}
		}
		ok := c.put(talk, sent)
		c.end(id, []byte("0"))
		return ok
	}
	require.True(t, store("quiet", "a", 1<<20))
	require.True(t, store("text", "b"))
	for i := range 12 {
		require.True(t, store(fmt.Sprint(i), "b", 4<<20, 5<<20))
		require.LessOrEqual(t, c.shown.bytes, mostPictures)
	}
	for id, owner := range map[string]string{"quiet": "a", "text": "b", "11": "b"} {
		_, ok := c.find(id, owner)
		require.True(t, ok, id)
	}
	_, ok := c.find("0", "b")
	require.False(t, ok)
	total := 0
	for _, p := range c.pictures {
		total += len(p.data) + aroundItems
	}
	require.Equal(t, total, c.shown.bytes)
	require.True(t, store("half", "c", mostShown/2, mostShown/2))
	require.False(t, store("more", "c", mostShown/2, mostShown/2+1))
}

// TestGoesOnWithPictures: a conversation that goes on has its pictures, and says so if they are gone.
func TestGoesOnWithPictures(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	c := &conversations{}
	url, data := photograph(7, 9000)
	require.True(t, c.begin("resp_1", "", showing(url)))
	c.end("resp_1", []byte(`{"role":"assistant","content":"a cat"}`))
	body := given(`{"previous_response_id":"resp_1","input":"and now?"}`)
	body.Kept = func(name string) ([]byte, error) {
		if p, ok := c.picture(name, ""); ok {
			return p, nil
		}
		return nil, errKeptNoMore
	}
	find := func(id string) (string, bool) { return c.find(id, "") }
	o, fault := decodeResponse(body, sees, find, false)
	require.Nil(t, fault)
	_, pictures := shown(&o.Prompts[0].Chat.Messages[0])
	require.Equal(t, []string{string(data)}, pictures)
	require.True(t, c.begin("resp_2", "", o.items))

	items, _ := c.find("resp_1", "")
	body = given(`{"previous_response_id":"resp_1","input":"and now?"}`)
	body.Kept = func(string) ([]byte, error) { return nil, errKeptNoMore }
	_, fault = decodeResponse(body, sees, func(string) (string, bool) { return items, true }, false)
	require.Contains(t, fault.Text, "the picture is kept no more")
	chat, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": []any{map[string]any{
		"type": "image_url", "image_url": keptScheme + "x"}}}}})
	require.NoError(t, err)
	_, fault = decodeChat(given(string(chat)), sees)
	require.Contains(t, fault.Text, "neither data: nor http")
}
