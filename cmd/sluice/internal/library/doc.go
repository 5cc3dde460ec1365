// Package library has the commands that keep models in the store, pull, list, show, rm, cp and create, and what other
// commands need of them: to pull what is missing, and to make models of others.
package library
