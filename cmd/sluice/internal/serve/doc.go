// Package serve has the command serve: the sources of its models, access, certificates, and what clients may change in
// the store. Package server has the API.
package serve
