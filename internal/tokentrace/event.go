package tokentrace

// Model is a model whose records follow: the sizes that decide where its weights lie, and what its tokens depend on.
// The first record of a trace is one; later ones are of models that came later.
type Model struct {
	Number  int // tells the models of a trace apart
	Name    string
	Vocab   int
	Vectors int64   // bytes of what always stays in memory
	Dense   []int64 // bytes of each dense group of matrices, in program order
	Layers  []Layer // with experts, in program order
	Began   int64   // microseconds of Unix time, when the times of its records are 0; 0: not known
	Traits  []Trait // what the bits of its numbers depend on beside the tokens
}

// Trait is one thing that numbers depend on.
type Trait struct{ Name, Value string }

// Layer is a layer with experts.
type Layer struct {
	Experts, Used int
	Bytes         int64 // of an expert
}

// Event is a record of what a model did: Open, Step, Foreseen, Chosen, Settled, Waited, Drawn or End.
type Event interface{ kind() byte }

type (
	// Open is the arrival of a request.
	Open struct {
		Sequence uint64
		Time     uint64 // microseconds since the trace began
		Prompt   []int32
		Settings []byte // how it samples, as JSON
		Text     string // of the prompt; empty where only ids were recorded
		Client   uint64 // whose it is: clients are numbered as they come
	}
	// Step is a step that was computed.
	Step struct {
		Time   uint64
		Spans  []Span
		Tokens []int32 // of its rows, -1 where it is not known
		Budget Budget
	}
	// Budget holds the inputs of a step's formation that come from the clock; all other inputs are in the trace.
	Budget struct{ Rows, Alone, Fixed int }
	// Span is a run of consecutive rows of one sequence in a step.
	Span struct {
		Sequence       uint64
		Position, Rows int
		Proposed       int // of Rows, the last ones: of tokens that were guessed
	}
	// Foreseen is a prediction of a layer's experts for the rows of the last step, made by the layer's router from an
	// earlier residual stream: the input of the layer before it or, if Late is set, that layer's output. Margins are
	// by row and expert, above the cut, at least MarginFloor.
	Foreseen struct {
		Layer   int
		Late    bool
		Margins []int8
	}
	// Chosen lists the experts that the rows of the last step use in a layer: for each row as many as it may use,
	// ascending, -1 if there are fewer.
	Chosen struct {
		Layer   int
		Experts []int32
	}
	// Settled is the number of accepted tokens among those that the last step proposed of a sequence. Drawn events of
	// these tokens follow, and of one more.
	Settled struct {
		Sequence uint64
		Accepted int
	}
	// Waited is what a sequence's time went to since its last token, or since its request came.
	Waited struct {
		Sequence uint64
		For      []Spent
	}
	// Spent is a time in microseconds, and its cause, by the numbers of stages/bill.
	Spent struct {
		Cause int
		Time  uint64
	}
	// Drawn is a token that a sequence drew after the last step.
	Drawn struct {
		Sequence uint64
		Token    int32
	}
	// End is the end of a sequence.
	End struct {
		Sequence uint64
		Time     uint64
	}
)

const (
	kindModel byte = iota + 1
	kindOpen
	kindStep
	kindChosen
	kindDrawn
	kindEnd
	kindForeseen
	kindSettled
	kindOf
	kindWaited
)

func (*Open) kind() byte   { return kindOpen }
func (*Step) kind() byte   { return kindStep }
func (*Chosen) kind() byte { return kindChosen }
func (*Drawn) kind() byte  { return kindDrawn }
func (*End) kind() byte    { return kindEnd }

func (*Foreseen) kind() byte { return kindForeseen }
func (*Settled) kind() byte  { return kindSettled }
func (*Waited) kind() byte   { return kindWaited }

// MarginFloor is the least margin. Most margins have this value, so they are not written. mostForeseen bounds the
// rows of a prediction.
const (
	MarginFloor  = -24
	mostForeseen = 64
)
