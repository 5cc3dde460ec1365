// Package schema makes grammars of JSON Schemas, drafts 2020-12 and 7 (and what of 4 and 6 is written in the wild).
//
// A schema is first understood as a set of values (set.go): for each type of JSON what is allowed, arrays and objects
// as a list of alternatives. Keywords are intersections, unions and differences of such sets (keyword.go), which is
// exact, or an error that names the keyword that cannot be kept: never a wider set in silence. Then sets become rules
// (build.go). Keys come in the order of properties, then the others.
package schema
