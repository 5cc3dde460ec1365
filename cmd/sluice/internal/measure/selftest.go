package measure

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/uring"
)

// What the embedded model answers, on every device, and the bits of the logits that every processor computes of that
// answer: the first bytes of the SHA-256 of the float32 values.
const (
	knownQuestion = "What is the capital of France?"
	knownText     = "The capital of France is Paris."
	knownBits     = "cdc77cf152ddeb90"
)

// knownAnswer is knownText as the model writes it.
var knownAnswer = []int32{523, 1544, 304, 3488, 918, 324, 455, 6802, 46, 8178}

// mostApart is how far a card's logits may be from the processor's, as a part of their size.
const mostApart = 0.02

// errSelftest is the error of a machine on which something failed; what failed was printed.
var errSelftest = errors.New("something that was tested does not work: lines marked ! say what and why")

// selftest tests the devices and the drive of this folder, and prints what works.
func (c *Doctor) selftest(e *env.Env) error {
	began := e.Now()
	devices, err := compute.EachAlone(e, c.Device)
	if err != nil {
		return err
	}
	ctx, cancel := e.Interruptible(context.Background())
	defer cancel()
	bar := e.Progress("testing")
	bar.Count = true
	defer bar.Clear()
	var findings []Finding
	for i, d := range devices {
		bar.Show(int64(i), int64(len(devices)+1))
		found, err := testDevice(ctx, e, d)
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	bar.Show(int64(len(devices)), int64(len(devices)+1))
	findings = append(findings, testDrive("."))
	bar.Clear()
	return c.tell(e, findings, e.Now().Sub(began))
}

// tell prints the findings, and last what they come to.
func (c *Doctor) tell(e *env.Env, findings []Finding, took time.Duration) error {
	failed := slices.ContainsFunc(findings, func(f Finding) bool { return !f.OK })
	var err error
	if c.JSON {
		err = env.PrintJSON(e.Stdout, findings)
	} else if err = printFindings(e, findings); err == nil && !failed {
		_, err = fmt.Fprintf(e.Stdout, "Everything that was tested works (%.1f s).\n", took.Seconds())
	}
	if err == nil && failed {
		err = errSelftest
	}
	return err
}

// testDevice compares a device with the oracle, and has the embedded model answer on it.
func testDevice(ctx context.Context, e *env.Env, of compute.Alone) ([]Finding, error) {
	d, err := of.Open()
	if err != nil {
		return []Finding{{What: of.Name, State: "it cannot be opened: " + err.Error(), Do: mend(of.Name)}}, nil
	}
	oracle := ref.New()
	var findings []Finding
	for _, part := range []struct {
		what string
		test func() judge.Result
	}{
		{"operations", func() judge.Result { return judge.Ops(ctx, d, oracle) }},
		{"matrices of all types", func() judge.Result { return judge.Products(ctx, d, oracle, allTypes()) }},
		{"attention", func() judge.Result {
			return judge.Attentions(ctx, d, oracle, []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8})
		}},
	} {
		findings = append(findings, compared(of.Name, d.Name(), part.what, part.test()))
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), d.Close())
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", of.Name, err)
	}
	answer, err := testAnswer(ctx, e, of.Name)
	return append(findings, answer), err
}

// allTypes are the types of matrices that are computed with.
func allTypes() (types []quant.Type) {
	for _, t := range quant.All() {
		if quant.HasCodec(t) {
			types = append(types, t)
		}
	}
	return types
}

// compared is the finding of a comparison.
func compared(name, device, what string, r judge.Result) Finding {
	f := Finding{What: name, OK: len(r.Wrong) == 0}
	f.State = fmt.Sprintf("%s: %s computes %s as the plain loops do", what, env.Printable(device), env.Count(r.Cases, "case"))
	if r.Left > 0 {
		f.State += fmt.Sprintf("; the processor computes %d others", r.Left)
	}
	if !f.OK {
		f.State = fmt.Sprintf("%s: %s computes %d of %s wrongly, first %s", what, env.Printable(device), len(r.Wrong),
			env.Count(r.Cases, "case"), env.Printable(r.Wrong[0].Error()))
		f.Do = mend(name)
	}
	return f
}

// mend is what a person can do about a device that computes wrongly.
func mend(device string) string {
	if device == "cpu" {
		return "compute with SLUICE_CPU=generic, which needs none of these instructions (or unset it, if it is set); tell us, " +
			"with the output of sluice doctor"
	}
	return "install another driver of the card, or compute with --device cpu; tell us, with the output of sluice doctor"
}

// testAnswer has the embedded model answer, and compares tokens and bits with those known.
func testAnswer(ctx context.Context, e *env.Env, device string) (Finding, error) {
	f := Finding{What: device}
	ids, logits, err := answerOn(ctx, e, device)
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	forced, _ := e.Lookup("SLUICE_CPU")
	exact := device == "cpu" && forced != "ref" // the plain loops round elsewhere
	var processor []float32
	if err == nil && !exact {
		_, processor, err = answerOn(ctx, e, "cpu")
	}
	switch apart := judge.Relative(logits, processor); {
	case err != nil:
		f.State = "an answer: " + err.Error()
	case !slices.Equal(ids, knownAnswer):
		f.State = fmt.Sprintf("an answer: to %q the embedded model answers with the tokens %v, want %v", knownQuestion, ids,
			knownAnswer)
	case exact && bitsOf(logits) != knownBits:
		f.State = fmt.Sprintf("an answer: its logits have the bits %s, want %s", bitsOf(logits), knownBits)
	case !exact && !(apart <= mostApart):
		f.State = fmt.Sprintf("an answer: its logits are %.2g apart from the processor's, want at most %g", apart, mostApart)
	case exact:
		f.OK, f.State = true, fmt.Sprintf("an answer: %q, with the bits that every processor has", knownText)
	default:
		f.OK, f.State = true, fmt.Sprintf("an answer: %q, %.2g apart from the processor's", knownText, apart)
	}
	if !f.OK {
		f.Do = mend(device)
	}
	return f, nil
}

// answerOn has the embedded model answer on a device, token by token, and returns the logits of the known answer, read
// as a prompt.
func answerOn(ctx context.Context, e *env.Env, device string) (ids []int32, logits []float32, err error) {
	flags := compute.EngineFlags{Flags: *compute.FlagsFor(device)}
	flags.KV, flags.Speculate = "f16", "off"
	quiet := *e
	quiet.Stderr = io.Discard // which device computes is said once, by us
	engine, err := flags.Start(ctx, &quiet, func(cfg *actors.Config) { cfg.Sequences = 1 })
	if err != nil {
		return nil, nil, err
	}
	defer compute.Shut(engine)
	likeliest := sample.Defaults()
	likeliest.Temp = 0
	stream, err := engine.Generate(actors.Request{MaxTokens: 2 * len(knownAnswer), Sampling: likeliest, Chat: &chat.Input{
		Messages: []chat.Message{chat.Say("user", knownQuestion)}, AddGenerationPrompt: true}})
	if err != nil {
		return nil, nil, err
	}
	defer stream.Close()
	var ev actors.Event
	for err == nil {
		if err = stream.Next(ctx, &ev); err == nil && ev.HasToken {
			ids = append(ids, ev.Token)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	err = eachRow(ctx, engine, knownAnswer, func(_ int, row []float32) error {
		logits = append(logits, row...)
		return nil
	})
	return ids, logits, err
}

// bitsOf are the first bytes of the SHA-256 of values.
func bitsOf(values []float32) string {
	h := sha256.New()
	var word [4]byte
	for _, x := range values {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
		h.Write(word[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:len(knownBits)/2])
}

// testDrive writes a file that vanishes, and reads it as streamed weights are read.
func testDrive(folder string) Finding {
	f := Finding{What: "drive", OK: true}
	direct, err := rereadIn(folder)
	switch {
	case err != nil:
		f.OK, f.State = false, fmt.Sprintf("what is written to this folder cannot be read again: %v", err)
		f.Do = "test in a folder that can be written to, on the drive of your models; smartctl -a tells of a drive's faults"
	case direct:
		f.State = "what is written to this folder is read again, past the page cache"
	default:
		f.State = "what is written to this folder is read again, through the page cache: this file system has no direct reads"
	}
	return f
}

// rereadIn writes the embedded model, behind random bytes, to a file that has no name, and compares it with what is
// read.
func rereadIn(folder string) (direct bool, err error) {
	f, err := safefile.Scratch(filepath.Join(folder, "selftest"))
	if err != nil {
		return false, env.OnFile(folder, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	content := make([]byte, 8<<20, 8<<20+len(mini.GGUF))
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(knownText))).Read(content) // it cannot fail
	content = append(content, mini.GGUF...)
	if _, err = io.Copy(f, bytes.NewReader(content)); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return false, env.OnFile(folder, err)
	}
	return uring.Verify(source.Source{Name: "a file in " + folder, Path: f.Meanwhile(), Size: int64(len(content))}, content)
}
