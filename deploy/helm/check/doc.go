// Package check renders the chart beside it by Helm's own engine, and reads what comes of it as Kubernetes does. It is a
// module of its own, so that the program depends on neither.
package check
