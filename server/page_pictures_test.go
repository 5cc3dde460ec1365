package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageTakesPictures: a picture goes with a message to a model that sees, and is drawn in the conversation; the
// policy of the page is as ever.
func TestPageTakesPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	b := startBrowser(t)
	s := startPage(t, Options{})
	s.serves("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"object":"list","data":[{"id":"eyes","object":"model","capabilities":["completion","vision"]}]}`))
	})
	p := b.open(s.url+"/", 1280, 800, false)
	p.says("#model", "eyes")
	asked := s.answers("A red square.")
	p.eval(`new Promise((done) => {
		const c = document.createElement("canvas"); c.width = 640; c.height = 200;
		const x = c.getContext("2d"); x.fillStyle = "#c00"; x.fillRect(0, 0, 640, 200); x.fillStyle = "#fff"; x.fillRect(40, 40, 120, 120);
		c.toBlob((blob) => {
			const data = new DataTransfer(); data.items.add(new File([blob], "red.png", { type: "image/png" }));
			document.querySelector("#chat").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
			done(true);
		}, "image/png");
	})`, nil)
	p.says("#attached", "red.png")
	p.ask("What is it?")
	var body struct {
		Messages []struct {
			Content []struct {
				Type, Text string
				Image      struct{ URL string } `json:"image_url"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.receive(t, asked)), &body))
	content := body.Messages[len(body.Messages)-1].Content
	require.Len(t, content, 2)
	require.Equal(t, "image_url", content[0].Type)
	require.Regexp(t, "^data:image/png;base64,iVBOR", content[0].Image.URL)
	require.Equal(t, "What is it?", content[1].Text)
	p.until(`document.querySelector(".from-user canvas.picture")?.width === 480`)
	p.until(`[...document.querySelector(".from-user canvas.picture").getContext("2d").getImageData(5, 5, 1, 1).data].join() === "204,0,0,255"`)
	p.says(last, "A red square.")
	p.shot("picture")
}
