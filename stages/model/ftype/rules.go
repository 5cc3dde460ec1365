package ftype

import "github.com/sluice-ai/sluice/internal/quant"

// rule gives a type where its condition holds.
type rule struct {
	when condition
	give quant.Type
}

// rules has, for each kind, what differs from the base type. The first rule that holds decides.
type rules [kinds][]rule

// condition is a question about the role of a tensor.
type condition func(r *role) bool

func always(*role) bool     { return true }
func falcon(r *role) bool   { return r.arch == "falcon" }
func unguided(r *role) bool { return !r.importance }
func guided(r *role) bool   { return r.importance }
func fewHeads(r *role) bool { return r.gqa >= 4 } // keys and values are small beside the rest
func experts8(r *role) bool { return r.experts == 8 }
func anySmall(r *role) bool { return r.gqa >= 4 || r.experts >= 4 }
func moreBits(r *role) bool {
	n := r.layer()
	return n < r.of()/8 || n >= 7*r.of()/8 || (n-r.of()/8)%3 == 2
}
func middle(r *role) bool    { n := r.layer(); return n >= r.of()/8 && n < 7*r.of()/8 }
func early8(r *role) bool    { return r.layer() < r.of()/8 }
func early16(r *role) bool   { return r.layer() < r.of()/16 }
func counted8(r *role) bool  { return r.index < r.of()/8 }
func firstTwo(r *role) bool  { return r.index < 2 }
func firstFour(r *role) bool { return r.index < 4 }

func both(a, b condition) condition { return func(r *role) bool { return a(r) && b(r) } }
func not(a condition) condition     { return func(r *role) bool { return !a(r) } }

// everywhere is a rule without exception.
func everywhere(t quant.Type) []rule { return []rule{{always, t}} }

// aliases are the short names of the usual variants.
var aliases = map[string]string{"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE"}

// fileTypes is the table. The numbers are those of enum llama_ftype in llama.h.
var fileTypes = [...]Type{
	{"F32", 0, quant.F32, rules{}},
	{"F16", 1, quant.F16, rules{}},
	{"BF16", 32, quant.BF16, rules{}},
	{"Q8_0", 7, quant.Q8_0, eight},
	{"Q6_K", 18, quant.Q6_K, eight},
	{"Q5_1", 9, quant.Q5_1, eight},
	{"Q5_0", 8, quant.Q5_0, eight.and(rules{ffnDown: {{both(guided, early8), quant.Q5_1}}})},
	{"Q5_K_M", 17, quant.Q5_K, eight.and(rules{
		attnV:   {{moreBits, quant.Q6_K}},
		ffnDown: {{moreBits, quant.Q6_K}},
	})},
	{"Q5_K_S", 16, quant.Q5_K, eight},
	{"Q4_1", 3, quant.Q4_1, eight},
	{"Q4_0", 2, quant.Q4_0, eight.and(rules{ffnDown: {{both(guided, early8), quant.Q4_1}}})},
	{"Q4_K_M", 15, quant.Q4_K, eight.and(eightOut).and(rules{
		attnV: {{moreBits, quant.Q6_K}},
		ffnDown: {
			{both(falcon, early16), quant.Q6_K},
			{both(falcon, moreBits), quant.Q5_K},
			{both(not(falcon), moreBits), quant.Q6_K},
		},
	})},
	{"Q4_K_S", 14, quant.Q4_K, eight.and(eightOut).and(rules{
		attnV:   {{firstFour, quant.Q5_K}},
		ffnDown: {{both(not(falcon), early8), quant.Q5_K}},
	})},
	{"IQ4_NL", 25, quant.IQ4_NL, eight.and(eightOut).and(iq4)},
	{"IQ4_XS", 30, quant.IQ4_XS, eight.and(eightOut).and(iq4)},
	{"MXFP4_MOE", 38, quant.MXFP4, rules{}},
	{"Q3_K_L", 13, quant.Q3_K, eight.and(rules{
		attnV:   everywhere(quant.Q5_K),
		attnOut: {{experts8, quant.Q3_K}, {falcon, quant.Q4_K}, {always, quant.Q5_K}},
		ffnDown: {{falcon, quant.Q4_K}, {always, quant.Q5_K}},
	})},
	{"Q3_K_M", 12, quant.Q3_K, eight.and(eightOut).and(rules{
		attnV:   {{firstTwo, quant.Q5_K}, {always, quant.Q4_K}},
		attnOut: {{not(falcon), quant.Q4_K}},
		ffnDown: {{early16, quant.Q5_K}, {not(falcon), quant.Q4_K}, {moreBits, quant.Q4_K}},
	})},
	{"Q3_K_S", 11, quant.Q3_K, eight.and(eightOut)},
	{"IQ3_M", 27, quant.IQ3_S, eight.and(eightOut).and(rules{
		attnV:   everywhere(quant.Q4_K),
		attnOut: {{not(falcon), quant.Q4_K}},
		ffnDown: {{early8, quant.Q4_K}, {both(experts8, moreBits), quant.Q4_K}},
	})},
	{"IQ3_S", 26, quant.IQ3_S, eight.and(eightOut).and(rules{attnV: {{fewHeads, quant.Q4_K}}})},
	{"IQ3_XS", 22, quant.IQ3_S, eight.and(eightOut).and(rules{
		attnV:   {{fewHeads, quant.Q4_K}},
		attnK:   everywhere(quant.IQ3_XXS),
		attnQ:   everywhere(quant.IQ3_XXS),
		ffnGate: {{middle, quant.IQ3_XXS}},
		ffnUp:   {{middle, quant.IQ3_XXS}},
	})},
	{"IQ3_XXS", 23, quant.IQ3_XXS, eight.and(eightOut).and(rules{
		output:  everywhere(quant.Q5_K),
		embed:   everywhere(quant.IQ3_S),
		attnV:   {{fewHeads, quant.Q4_K}, {unguided, quant.IQ3_S}},
		attnK:   everywhere(quant.IQ2_S),
		attnQ:   everywhere(quant.IQ2_S),
		attnOut: {{not(falcon), quant.IQ3_S}},
		ffnDown: {{both(unguided, early8), quant.Q4_K}, {unguided, quant.Q3_K}},
	})},
	{"Q2_K", 10, quant.Q2_K, eight.and(eightOut).and(rules{
		attnV:   {{fewHeads, quant.Q4_K}, {always, quant.Q3_K}},
		attnOut: {{not(falcon), quant.Q3_K}},
		ffnDown: everywhere(quant.Q3_K),
	})},
	{"Q2_K_S", 21, quant.Q2_K, eight.and(rules{
		attnV:   {{fewHeads, quant.Q4_K}},
		ffnDown: {{early8, quant.Q4_K}},
	})},
	{"IQ2_M", 29, quant.IQ2_S, twoBits(quant.IQ3_S).and(rules{attnOut: everywhere(quant.IQ3_S)})},
	{"IQ2_S", 28, quant.IQ2_XS, twoBits(quant.IQ3_S).and(rules{attnOut: everywhere(quant.IQ3_S)})},
	{"IQ2_XS", 20, quant.IQ2_XS, twoBits(quant.Q2_K)},
	{"IQ2_XXS", 19, quant.IQ2_XXS, twoBits(quant.Q2_K)},
	{"IQ1_M", 31, quant.IQ1_M, twoBits(quant.Q2_K).and(rules{attnOut: everywhere(quant.IQ2_XXS)})},
	{"IQ1_S", 24, quant.IQ1_S, twoBits(quant.Q2_K).and(rules{attnOut: everywhere(quant.IQ2_XXS)})},
	{"TQ2_0", 37, quant.TQ2_0, eight.and(rules{embed: everywhere(quant.Q4_K)})},
	{"TQ1_0", 36, quant.TQ1_0, eight.and(rules{embed: everywhere(quant.Q4_K)})},
}

var (
	// eight is for models of eight experts, whose attention is tiny beside them.
	eight = rules{attnV: {{experts8, quant.Q8_0}}, attnK: {{experts8, quant.Q8_0}}}

	// eightOut adds the attention's output, for file types of fewer bits.
	eightOut = rules{attnOut: {{both(experts8, not(falcon)), quant.Q5_K}}}

	// iq4 is what both types of 4-bit codes have in common.
	iq4 = rules{attnV: {{fewHeads, quant.Q5_K}}, ffnDown: {{both(unguided, early8), quant.Q5_K}}}
)

// twoBits is for file types of up to two bits: rich is what embeddings, values and the first layers get.
func twoBits(rich quant.Type) rules {
	return rules{
		output:  everywhere(quant.Q5_K),
		embed:   everywhere(rich),
		attnV:   {{anySmall, quant.Q4_K}, {always, rich}},
		attnK:   {{experts8, quant.Q4_K}},
		attnOut: {{experts8, quant.Q5_K}},
		ffnDown: {{counted8, rich}},
	}
}

// and joins two sets of rules; those of r come first.
func (r rules) and(more rules) rules {
	for kind := range r {
		r[kind] = append(r[kind][:len(r[kind]):len(r[kind])], more[kind]...)
	}
	return r
}
