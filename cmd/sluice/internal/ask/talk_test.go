package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/lineedit"
	"github.com/sluice-ai/sluice/stages/chat"
)

// typed is a talk with the embedded model in which a person types lines; read may do something at each.
func typed(t *testing.T, c *Chat, lines ...string) (*talk, *bytes.Buffer) {
	t.Helper()
	engine, err := c.load(t.Context(), envtest.NewEnv(""))
	require.NoError(t, err)
	zero := float32(0)
	c.Temp = &zero
	d, err := c.dialogue(engine)
	require.NoError(t, err)
	t.Cleanup(func() { compute.Shut(d.engine) })
	var screen bytes.Buffer
	return &talk{
		dialogue: d, patient: true, answers: env.Pane{W: &screen, ANSI: true}, notes: env.Pane{W: &screen, ANSI: true},
		now: func() time.Time { return time.Unix(1, 0) }, interruptible: context.WithCancel,
		read: func(_ context.Context, prompt string) (string, error) {
			if len(lines) == 0 {
				return "", io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			switch line {
			case "^C":
				return "", errLeft
			case "typed^C":
				return "", errCleared
			}
			screen.WriteString(prompt + line + "\n")
			return line, nil
		},
	}, &screen
}

// TestChatInterrupt stops answers as Ctrl-C does: at the first text, and before any.
func TestChatInterrupt(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "Tell me a short story about a fox.", "12 + 30", "/regen")
	answers := 0
	talk.interruptible = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		switch answers++; answers {
		case 1:
			talk.answers.W = &tripwire{screen, cancel}
		case 2:
			cancel()
		case 3:
			talk.answers.W = screen
		}
		return ctx, cancel
	}
	read := talk.read
	kept := []int{}
	talk.read = func(ctx context.Context, prompt string) (string, error) {
		kept = append(kept, len(talk.Messages))
		return read(ctx, prompt)
	}
	require.NoError(t, talk.run(context.Background()))
	require.Equal(t, []int{0, 2, 2, 2}, kept, "messages before each line")
	require.Contains(t, screen.String(), env.Dim+"stopped"+env.Normal)
	require.Contains(t, screen.String(), "stopped before the answer began: the message was not kept")
	require.Contains(t, screen.String(), "tokens, ")
	require.Equal(t, "user", talk.Messages[0].Role)
	require.Equal(t, "assistant", talk.Messages[1].Role)
	require.Contains(t, talk.Messages[1].Text(), "fox", "the last one went to its end")
}

// tripwire calls cut at the first text.
type tripwire struct {
	io.Writer
	cut func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	w.cut()
	return w.Writer.Write(p)
}

// TestChatTerminated ends everything, also in an answer.
func TestChatTerminated(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "Tell me a short story about a fox.", "12 + 30")
	life, end := context.WithCancel(context.Background())
	talk.answers.W = &tripwire{screen, end}
	require.ErrorIs(t, talk.run(life), context.Canceled)
	require.NotContains(t, screen.String(), "12")

	read := abandonable(func() (string, error) { select {} })
	_, err := read(life, prompt)
	require.ErrorIs(t, err, context.Canceled)
}

func TestChatCleared(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "^C", "12 + 30", "^C", "typed^C", `"""12`, "^C", "^C", "never")
	require.NoError(t, talk.run(context.Background()))
	require.NotContains(t, screen.String(), "never", "two Ctrl-C end, when nothing happened between")
	require.Equal(t, 4, strings.Count(screen.String(), "Ctrl-D ends, and so does Ctrl-C twice"))
	require.Len(t, talk.Messages, 2)

	talk, screen = typed(t, &Chat{}, "^C", "^C", "12 + 30")
	seconds := int64(0)
	talk.now = func() time.Time { seconds += 5; return time.Unix(seconds, 0) }
	require.NoError(t, talk.run(context.Background()))
	require.Contains(t, screen.String(), "12 + 30 = 42.")
}

// TestChatPatience shows failures, and goes on.
func TestChatPatience(t *testing.T) {
	c := &Chat{System: "Be brief."}
	c.Ctx = 64
	talk, screen := typed(t, c, "/nonsense", "Tell me a short story about a fox.", "12 + 30", "/reset", "12 + 30",
		"/stats", "/exit", "never")
	require.NoError(t, talk.run(context.Background()))
	shown := screen.String()
	require.Contains(t, shown, "there is no command /nonsense: /help lists them")
	require.NotContains(t, shown, "take the last message back", "the help is only shown when it is asked for")
	require.Contains(t, shown, "the context of 64 tokens is full: /reset begins a new conversation")
	require.Contains(t, shown, "and the context holds 64: shorten it")
	require.Contains(t, shown, "The message was not kept. /reset begins a new conversation")
	require.Contains(t, shown, "12 + 30 = 42.")
	require.Regexp(t, `prompt +\d+ tokens, \d+ of them cached; \d+ tokens a second
answer +\d+ tokens; \d+ tokens a second
session +2 answers: \d+ tokens read, \d+ more cached, \d+ written
context +\d+ of 64 tokens used
seed +\d+`, shown)
	require.NotContains(t, shown, "never")
	require.Equal(t, []string{"system", "user", "assistant"}, roles(talk.Messages))
}

func roles(messages []chat.Message) (all []string) {
	for _, m := range messages {
		all = append(all, m.Role)
	}
	return all
}

func TestChatWriteFails(t *testing.T) {
	talk, _ := typed(t, &Chat{}, "12 + 30")
	talk.patient = false
	talk.answers.W = broken{}
	require.ErrorContains(t, talk.run(context.Background()), "writing the answer: the pipe is broken")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

// TestSpoken: thinking is saved as the field that templates know, and read again.
func TestSpoken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	c := chat.Conversation{Messages: []chat.Message{chat.Say("user", "1 < 2?"), spoken("\nhm\n", "\n\nYes.")}}
	require.NoError(t, saveTalk(path, c, true))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"messages": [{"role": "user", "content": "1 < 2?"},
		{"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}]}`, string(text))
	again, err := loadTalk(path)
	require.NoError(t, err)
	require.Equal(t, roles(c.Messages), roles(again.Messages))
	require.Equal(t, "Yes.", again.Messages[1].Text())
}

// TestSaveKeepsTools: what a conversation file had beside its messages is in the next one too, in its order.
func TestSaveKeepsTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	writeText(t, path, `{"messages": [], "tools": [{"z": 1.0, "a": "<"}], "documents": [{"text": "x"}]}`)
	c, err := loadTalk(path)
	require.NoError(t, err)
	require.NoError(t, saveTalk(path, c, true))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"messages":[],"tools":[{"z":1.0,"a":"<"}],"documents":[{"text":"x"}]}`,
		strings.Join(strings.Fields(strings.ReplaceAll(string(text), `": `, `":`)), ""))
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	got, err := recent(path, 2)
	require.NoError(t, err)
	require.Empty(t, got)

	writeText(t, path, "1\n2\n3\n4\n")
	got, err = recent(path, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4"}, got)
	writeText(t, path, "1\n2\n3\n4\n\xff5\n")
	got, err = recent(path, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"4", "5"}, got)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "4\n5\n", string(text), "a history does not grow forever")

	require.Equal(t, []string{"/reset", "/regen"}, completions("/re"))
	require.Empty(t, completions("re"))
}

// A person's conversation goes on where the context is full: without its oldest messages, which are saved all the same.
func TestChatTrims(t *testing.T) {
	c := &Chat{System: "Be brief."}
	c.Ctx = 96
	talk, screen := typed(t, c, "12 + 30", "12 + 31", "12 + 32", "12 + 33", "12 + 34", "12 + 35", "/save talk.json", "/undo", "/reset")
	talk.trims = true
	t.Chdir(t.TempDir())
	seen := []int{}
	read := talk.read
	talk.read = func(ctx context.Context, prompt string) (string, error) {
		seen = append(seen, len(talk.seen(talk.Messages)))
		return read(ctx, prompt)
	}
	require.NoError(t, talk.run(context.Background()))
	shown := screen.String()
	require.Contains(t, shown, "left out of what the model sees")
	require.Contains(t, shown, "12 + 35 = 47.")
	require.Contains(t, shown, "13 messages saved")
	require.Contains(t, shown, "11 messages left")
	require.Less(t, seen[6], 13)
	require.Equal(t, "system", talk.seen(talk.Messages)[0].Role)
	require.Zero(t, talk.left)
	_, err := talk.ask(context.Background(), strings.Repeat("word ", 200), func(piece) error { return nil })
	require.ErrorContains(t, err, "context", "one message alone does not become shorter")
}

func TestChatUndo(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "/system -", "/undo", "12 + 30", "12 + 31", "/undo", "/stats", "/bye", "never")
	require.NoError(t, talk.run(context.Background()))
	require.Contains(t, screen.String(), "there is no message to take back")
	require.Contains(t, screen.String(), "there is no system message to remove")
	require.Regexp(t, `context +[1-9]\d* of \d+ tokens used`, screen.String(), "two messages are left")
	require.Contains(t, screen.String(), "2 messages left")
	require.Len(t, talk.Messages, 2)
	require.Equal(t, "12 + 30", talk.Messages[0].Text())
}

func TestChatSet(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "/set temperature 0.5", "/set top_k=7", "/set top-p 2", "/set nonsense 1", "/set temp", "/set seed x", "/set")
	require.NoError(t, talk.run(context.Background()))
	require.InDelta(t, 0.5, talk.sampling.Temp, 1e-6)
	require.Equal(t, 7, talk.sampling.TopK)
	require.InDelta(t, 0.95, talk.sampling.TopP, 1e-6, "what is wrong changes nothing")
	for _, said := range []string{"there is no setting nonsense: want think, format, system, or one of temperature, ", "want: /set NAME VALUE", "/set seed: ",
		"temperature      0.5", "temperature is 0.5 from the next answer on"} {
		require.Contains(t, screen.String(), said)
	}
}

// TestChatOtherWords: what people type who come from other programs, and /set lists nothing twice.
func TestChatOtherWords(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "/set parameter top_k 9", "/set system You are terse.", "/set format json", "Who are you?", "/set",
		"/set format text", "/set format xml", "/show", "/bye")
	require.NoError(t, talk.run(context.Background()))
	require.Equal(t, 9, talk.sampling.TopK)
	system, _ := talk.system()
	require.Equal(t, "You are terse.", system)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(talk.Messages[2].Text()), &object), talk.Messages[2].Text())
	require.Nil(t, talk.form)
	for _, said := range []string{"format           json", "want: /set format json", "architecture", "of weights", "that it was trained for"} {
		require.Contains(t, screen.String(), said)
	}
	require.Equal(t, 1, strings.Count(screen.String(), "top_k  "), "it is shown with its value")
	require.NotRegexp(t, `others.*(temperature|top_k|top_p|min_p|repeat_penalty|seed)\b`, screen.String())
	require.Regexp(t, `others.*typical`, screen.String())
}

// TestChatVerbose: after an answer its counts are shown, in a line or all of them.
func TestChatVerbose(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "12 + 30", "/set verbose", "12 + 31", "/set quiet", "12 + 32", "/bye")
	require.NoError(t, talk.run(context.Background()))
	_, later, _ := strings.Cut(screen.String(), "12 + 31")
	loud, quiet, _ := strings.Cut(later, "12 + 32")
	require.Regexp(t, `prompt +\d+ tokens, \d+ of them cached; \d+ tokens a second\n.*answer +\d+ tokens; \d+ tokens a second`, loud)
	require.Regexp(t, `\d+ tokens, \d+ a second`, quiet)
	require.NotContains(t, quiet, "of them cached")
}

// TestChatThinks: thinking is turned on and off, in the words of other programs, too.
func TestChatThinks(t *testing.T) {
	talk, screen := typed(t, &Chat{}, "/set think false", "/set nothink", "/set think maybe", "/set")
	require.NoError(t, talk.run(context.Background()))
	require.EqualValues(t, "off", talk.thinks.Think)
	vars := talk.thinks.vars()
	require.Equal(t, []jsontext.Value{jsontext.Bool(false), jsontext.Bool(false), jsontext.String("disabled")},
		[]jsontext.Value{vars.Get("enable_thinking"), vars.Get("thinking"), vars.Get("thinking_mode")})
	for _, said := range []string{"has no switch for thinking: it stays as it is", "want: /set think on, or /set think off", "think            off"} {
		require.Contains(t, screen.String(), said)
	}
}

func TestCompletions(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "talk one.json", "{}")
	require.NoError(t, os.Mkdir("talks", 0o700))
	for line, want := range map[string][]string{
		"/re": {"/reset", "/regen"}, "/set temp": {"/set temperature "}, "/set top_": {"/set top_k ", "/set top_p ", "/set top_n_sigma "},
		"/load t": {"/load talk one.json", "/load talks/"}, "/save [": nil, "hello": nil,
	} {
		require.Equal(t, want, completions(line), line)
	}
}

// At a terminal /save asks before it replaces a file that is not this conversation's.
func TestChatSaveAsks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "theirs.json", "theirs")
	c := &Chat{}
	talk, screen := typed(t, c, "/save theirs.json", "no", "/save ours.json", "/save ours.json", "/save theirs.json", "y")
	talk.replace = func(path string) error { return c.ask(context.Background(), talk, path) }
	require.NoError(t, talk.run(context.Background()))
	require.Contains(t, screen.String(), "theirs.json was not replaced")
	require.Equal(t, 2, strings.Count(screen.String(), question))
	require.NotEqual(t, "theirs", readText(t, "theirs.json"))
}

// fakeMode is a terminal's, without one.
type fakeMode struct {
	now       string
	suspended int
}

func (m *fakeMode) typing() { m.now = "typing" }

func (m *fakeMode) listening() { m.now = "listening" }

func (m *fakeMode) restore() { m.now = "restored" }

func (m *fakeMode) suspend() { m.now, m.suspended = "suspended", m.suspended+1 }

// What is pasted is one message; a window that changes is drawn again; Ctrl-C tells whether something was typed.
func TestEditor(t *testing.T) {
	keys, resized := make(chan []byte), make(chan os.Signal)
	var screen bytes.Buffer
	mode := &fakeMode{}
	ed := &editor{screen: env.Pane{W: &screen, ANSI: true}, keys: keys, resized: resized, mode: mode}
	ed.size = func() (int, int) { return 40, 12 }
	path := filepath.Join(t.TempDir(), "config", "history")
	require.NoError(t, ed.remember(path))
	type result struct {
		text string
		err  error
	}
	next := func(typed ...string) result {
		got := make(chan result)
		go func() {
			text, err := ed.read(t.Context(), prompt)
			if err == nil {
				ed.keep(text)
			}
			got <- result{text, err}
		}()
		for _, k := range typed {
			if k == "resized" {
				resized <- os.Interrupt
				continue
			}
			keys <- []byte(k)
		}
		return <-got
	}
	require.Equal(t, result{text: "one\ntwo\nthree"}, next("\x1b[200~one\rtwo\rthree", "resized", "\x1b[201~", "\r"))
	require.Equal(t, "listening", mode.now)
	require.Contains(t, screen.String(), lineedit.PasteOn)
	require.Contains(t, screen.String(), "… "+"two")
	require.Equal(t, result{err: errLeft}, next("\x03"))
	require.Equal(t, result{err: errCleared}, next("x\x03"))
	require.Equal(t, result{err: io.EOF}, next("\x04"))
	require.Equal(t, result{text: "one\ntwo\nthree"}, next("\x1b[A", "\r"))
	require.Equal(t, result{text: "one\ntwo\nthree"}, next("\x12two", "\r"), "a search finds the whole message")
	require.Zero(t, mode.suspended)
	screen.Reset()
	require.Equal(t, result{text: "one\ntwo\nthree"}, next("one\x1b\rtwo\x1a", "\x1b\rthree", "\r"))
	require.Equal(t, 1, mode.suspended)
	require.Contains(t, screen.String(), "\r\n"+lineedit.PasteOff+lineedit.PasteOn)
	require.Equal(t, "listening", mode.now)
	close(keys)
	require.Equal(t, result{err: io.EOF}, next())
	ed.close()
	require.Equal(t, "restored", mode.now)

	again := &editor{}
	require.NoError(t, again.remember(path))
	again.Begin("", "")
	again.Type([]byte("\x1b[A"))
	require.Equal(t, "one\ntwo\nthree", again.Text(), "the history is kept, and has whole messages")
	again.mode = mode
	again.close()
}

// TestKeptMessages: a message of several lines is one entry of the history, which means the same when it comes again.
func TestKeptMessages(t *testing.T) {
	var kept []string
	talk, _ := typed(t, &Chat{}, `"""one`, "two", `three"""`, `four \`, "five", "six", `"""cut`)
	(&Chat{Prompt: []string{"12", "+ 30"}}).begin(talk, nil)
	talk.keep = func(text string) { kept = append(kept, text) }
	var said []string
	for range 5 {
		text, err := talk.next(t.Context())
		require.NoError(t, err)
		said = append(said, text)
	}
	require.Equal(t, []string{"12 + 30", "one\ntwo\nthree", "four \nfive", "six", "cut"}, said)
	require.Equal(t, []string{"12 + 30", `"""one` + "\ntwo\n" + `three"""`, "four \nfive", "six", `"""cut"""`}, kept)
	again, _ := typed(t, &Chat{}, kept...)
	for _, want := range said {
		text, err := again.next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// A line that was waited for in vain is the next one's, and Ctrl-C clears.
func TestPlainLines(t *testing.T) {
	r, w := io.Pipe()
	e := envtest.NewEnv("")
	e.Stdin = r
	e.Interruptible = func(parent context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(parent)
		cancel()
		return ctx, cancel
	}
	read := plain(e)
	_, err := read(t.Context(), prompt)
	require.ErrorIs(t, err, errLeft)
	e.Interruptible = context.WithCancel
	go fmt.Fprintln(w, "later")
	text, err := read(t.Context(), prompt)
	require.NoError(t, err)
	require.Equal(t, "later", text, "no line is lost to a read that was given up")
}
