// Package chat turns conversations into prompts, as the model's own chat template says.
//
// A message has types: parts, calls of tools, results (message.go). What a template sees of it is JSON, in the order in
// which it came (fields.go); values of Jinja are made of that when a prompt is rendered, and stay in this folder.
//
// A template is compiled once and rendered for each request; it is untrusted and works within budgets (package
// jinja). Models without a template get their family's, or ChatML (family.go). What comes from outside is given the
// form that templates expect (normal.go). Not here: tokens (stages/token), HTTP shapes (server).
package chat
