package vision

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Names of what rows of text that ask patches are made with, beside the patches: the learned questions, where each
// patch is, and which rows are no patches.
const (
	Questions = "questions"
	Where     = "where"
	Unseen    = "unseen"
)

// QuestionTable is the tensor that Questions are made of.
const QuestionTable = "resampler.query"

// head is how many values each head of a resampler has, and unseen how many more a key has that says it is none.
const head, unseen = 128, 16

// MiniCPM-V 2.5 to 4.5: SigLIP with learned positions by parts of a picture, and a resampler: a fixed number of learned
// questions attend to all patches, whose keys know where they are by sines and cosines. Here the questions are rows
// behind the patches; their own keys are so far from any question that they count for nothing. Pictures are seen
// whole, then in slices. Paper: arXiv:2408.01800; checked against llama.cpp, minicpmv.
func minicpm(r *outline) {
	r.square(byPart)
	b := r.patches
	b.Ignore("resampler.")
	x := b.Input(Patches, 3*r.Patch*r.Patch, true)
	at := b.Input(Positions, r.width, true)
	b.Block()
	x = r.record(b.Add(b.Linear(x, patchMatrix, r.width), at), layer{norm: r.byLayer})
	b.Output(Patches, b.LayerNorm(x, "v.post_ln", r.eps))

	s := r.shapes[QuestionTable]
	if len(s) != 2 || s[0]%head != 0 || s[1] > mostQuestions {
		r.faultf("tensor %s is %v, want heads of %d values of at most %d questions", QuestionTable, s, head, mostQuestions)
		s = []int{head, 1}
	}
	r.Asks = s[1]
	const eps = 1e-6 // of the resampler's norms, whatever those of the layers have
	b, width := r.rows, s[0]
	b.Ignore(QuestionTable, "resampler.pos_embed_k")
	patches, asked := b.Input(Patches, r.width, true), b.Input(Questions, width, true)
	where, none := b.Input(Where, width, true), b.Input(Unseen, unseen, true)
	ones := r.ones(b, unseen)
	b.Block()
	v := b.LayerNorm(b.Linear(patches, "resampler.kv", width), "resampler.ln_kv", eps)
	q := b.Linear(b.LayerNorm(asked, "resampler.ln_q", eps), "resampler.attn.q", width)
	k := b.Linear(b.Add(v, where), "resampler.attn.k", width)
	heads := width / head
	x = b.Attend(b.HeadJoinShared(q, ones, heads), b.HeadJoinShared(k, none, heads), b.Linear(v, "resampler.attn.v", width),
		ir.AttendArgs{Heads: heads, KVHeads: heads, KDim: head + unseen, VDim: head, Both: true,
			Scale: float32(1 / math.Sqrt(head))})
	x = b.LayerNorm(b.Linear(x, "resampler.attn.out", width), "resampler.ln_post", eps)
	r.last = b.Output(Rows, b.Linear(x, "resampler.proj", r.outputs("resampler.proj")))
}

// mostQuestions is the most rows that are believed to ask.
const mostQuestions = 1 << 12

// Ask are the inputs of Rows where questions ask a picture's patches: these first, then the questions.
func (t *Tower) Ask(l *Layout, patches, questions []float32) map[string][]float32 {
	n := len(l.Order)
	of := func(name string) int {
		v, _ := t.Rows.Input(name)
		return t.Rows.Widths[v]
	}
	width, all := of(Questions), n+t.Asks
	in := map[string][]float32{Patches: make([]float32, all*of(Patches)), Questions: make([]float32, all*width),
		Where: make([]float32, all*width), Unseen: make([]float32, all*unseen)}
	copy(in[Patches], patches)
	copy(in[Questions][n*width:], questions)
	for i := n * unseen; i < len(in[Unseen]); i++ {
		in[Unseen][i] = farAway
	}
	for row, patch := range l.Order {
		to := in[Where][row*width:][:width]
		waves(to[:width/2], patch%l.Grid.Width)
		waves(to[width/2:], patch/l.Grid.Width)
	}
	return in
}

// farAway is what a key has for each value of its end that says it is none: scores are lower than any other by so much
// that their weight is 0.
const farAway = -1000

// waves are the sines and then the cosines of a number, of lengths from 2π to 10,000 times that.
func waves(to []float32, at int) {
	n := len(to) / 2
	for i := range n {
		sin, cos := math.Sincos(float64(at) / math.Pow(10000, float64(i)/float64(n)))
		to[i], to[n+i] = float32(sin), float32(cos)
	}
}
