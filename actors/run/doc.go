// Package run is the runtime of actors, whatever they do: bounded mailboxes, turns on one goroutine, supervision,
// generations after a restart, dead letters and the account of what each actor did.
//
// It knows no model, no device and no file. Identities, life cycle and restarts are protoactor-go's (docs/adr/0001);
// who may send what to whom is declared by the package that has the actors.
package run
