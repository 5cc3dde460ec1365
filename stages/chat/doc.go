// Package chat turns conversations into prompts, as the model's own chat template says.
//
// A template is compiled once and rendered for each request; it is untrusted and works within budgets (package
// jinja). Models without a template get their family's, or ChatML (family.go). What comes from outside is given the
// form that templates expect (normal.go). Not here: tokens (stages/token), HTTP shapes (server).
package chat
