package tokentrace

// Model is the first record of a trace: what of a model matters to those who place its weights.
type Model struct {
	Name    string
	Vocab   int
	Vectors int64   // bytes of what always stays in memory
	Dense   []int64 // bytes of each dense group of matrices, in program order
	Layers  []Layer // with experts, in program order
}

// Layer is one with experts.
type Layer struct {
	Experts, Used int
	Bytes         int64 // of an expert
}

// Event is a record after the first one: Open, Step, Foreseen, Chosen, Drawn or End.
type Event interface{ kind() byte }

type (
	// Open is a request that arrived.
	Open struct {
		Sequence uint64
		Time     uint64 // microseconds since the trace began
		Prompt   []int32
		Settings []byte // how it samples, as JSON
		Text     string // of the prompt; empty where only ids were recorded
		Client   uint64 // whose it is: clients are numbered as they come; 0 in traces before version 3
	}
	// Step is what was computed at once.
	Step struct {
		Time   uint64
		Spans  []Span
		Tokens []int32 // of its rows, -1 where it is not known; none in traces of version 1
		Budget Budget  // zero in traces before version 3
	}
	// Budget is what the clock had told by when a step was formed: all else that decides it is in the trace.
	Budget struct{ Rows, Alone, Fixed int }
	// Span is consecutive rows of one sequence in a step.
	Span struct {
		Sequence       uint64
		Position, Rows int
	}
	// Foreseen is what the router of a layer made of the stream before the last step's rows were there: as the layer
	// before it took it in, or, late, left it. By row and expert, margins above the cut, at least MarginFloor.
	Foreseen struct {
		Layer   int
		Late    bool
		Margins []int8
	}
	// Chosen is the experts that the rows of the last step went to in a layer: for each row as many as it may use,
	// ascending, -1 where there are fewer.
	Chosen struct {
		Layer   int
		Experts []int32
	}
	// Drawn is the token that a sequence got from the last step.
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
)

func (*Open) kind() byte   { return kindOpen }
func (*Step) kind() byte   { return kindStep }
func (*Chosen) kind() byte { return kindChosen }
func (*Drawn) kind() byte  { return kindDrawn }
func (*End) kind() byte    { return kindEnd }

func (*Foreseen) kind() byte { return kindForeseen }

// MarginFloor is the least of margins, which most of them are: they are not written. Rows of which something was
// foreseen are few.
const (
	MarginFloor  = -24
	mostForeseen = 64
)
