// Package constrain keeps answers in the form that their requests ask for.
//
// A Form is a grammar of an answer, as the request says it (form.go), or calls of the request's tools, in the way in
// which the model writes them (calls.go, parameters.go). A Constraint follows an answer token by token and says which
// may come next: thoughts, and what comes before a call, are free (constraint.go). Not here: grammars themselves and
// masks (stages/grammar), what calls look like (stages/tools), who finds masks when (actors).
package constrain
