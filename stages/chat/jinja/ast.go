package jinja

// expr is a node that has a value.
type expr interface {
	eval(r *run, s *scope) (Value, error)
}

// stmt is a node that writes or assigns.
type stmt interface {
	exec(r *run, s *scope) (flow, error)
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

type (
	literal   struct{ v Value }
	nameExpr  struct{ name string }
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, values []expr }

	attrExpr struct {
		of   expr
		name string
	}
	indexExpr struct{ of, index expr }
	// sliceExpr is of[from:to:step]; each bound may be nil.
	sliceExpr struct{ of, from, to, step expr }
	callExpr  struct {
		fn   expr
		args argExprs
	}
	// filterExpr is of|name(args); of is nil in a filter block, whose text is the input.
	filterExpr struct {
		of   expr
		name string
		fn   *builtin // nil if there is no such filter: an error only when reached
		args argExprs
	}
	testExpr struct {
		of   expr
		name string
		fn   *builtin
		args argExprs
	}
	notExpr   struct{ of expr }
	andExpr   struct{ left, right expr }
	orExpr    struct{ left, right expr }
	condExpr  struct{ then, test, other expr } // other is nil without else
	unaryExpr struct {
		op string
		of expr
	}
	binaryExpr struct {
		op          string
		left, right expr
	}
	concatExpr struct{ parts []expr }
	// compareExpr is first ops[0] rest[0] ops[1] rest[1] …, each operand evaluated once.
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
	}
)

// argExprs are the arguments of a call: f(pos…, names=named…, *star, **starStar).
type argExprs struct {
	pos            []expr
	names          []string
	named          []expr
	star, starStar expr
}

// target is what an assignment writes: a variable, an attribute of a namespace, or several of them.
type target struct {
	name  string
	attr  string
	items []target
	line  int
}

type (
	textStmt   struct{ text string }
	outputStmt struct {
		of   expr
		line int
	}
	ifStmt struct {
		tests  []expr
		bodies [][]stmt // one more than tests if there is an else
		line   int
	}
	forStmt struct {
		target    target
		over      expr
		test      expr // nil without "if"
		body      []stmt
		other     []stmt
		recursive bool
		line      int
	}
	setStmt struct {
		target target
		value  expr
		line   int
	}
	setBlockStmt struct {
		target target
		filter expr // nil, or filters whose innermost input is the text
		body   []stmt
		line   int
	}
	// scopeStmt is a body with variables of its own: with, block, generation.
	scopeStmt struct {
		names  []target
		values []expr
		body   []stmt
		atRoot bool // a block: sees the template's variables, not those of a loop around it
		line   int
	}
	filterStmt struct {
		filter expr
		body   []stmt
		line   int
	}
	autoescapeStmt struct {
		on   expr
		body []stmt
		line int
	}
	macroStmt struct {
		def  macroDef
		line int
	}
	callStmt struct {
		call   *callExpr
		caller macroDef
		line   int
	}
	jumpStmt struct{ how flow }
)

// macroDef is what the source says of a macro.
type macroDef struct {
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     []stmt

	usesCaller, usesVarargs, usesKwargs bool // which of the implicit variables the body mentions
}
