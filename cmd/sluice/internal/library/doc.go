// Package library has the commands that manage models in the store, pull, list, show, rm, cp and create, and functions
// for other commands: to pull missing models, and to make models of others.
package library
