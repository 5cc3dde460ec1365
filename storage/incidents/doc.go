// Package incidents keeps the last of what models did in a folder: token traces (docs/traces.md), of which the oldest
// go when the folder is as large as it may be. docs/incident-files.md describes the files.
package incidents
