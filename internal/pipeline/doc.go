// Package pipeline reads a pipeline file and plans its jobs. It is pure: text, facts and results in, jobs and problems out.
//
//	text ──Parse──► File ──Expand(facts, wanted)──► Plan: jobs, their legs and needs
//	                                                 │
//	                    when the needs of a job end: └─Plan.Job(node, results)──► run it with this spec, or skip it, and why
//
// Parse is strict. It reports everything that is wrong at once, each problem with its place: keys that are not known or are there
// twice, values of the wrong type, needs that are nowhere or go in a circle, expressions that do not compile, names that
// collide. A scalar keeps the text that its author wrote: 1.20 is not 1.2, 012 is not 10, and no is not false.
//
// What may stand where is said once, in the tables of keys.go and the values that they are made of. The decoder, the JSON
// schema and the reference for people all follow from these tables.
//
// Values reach a job as variables of its environment and nowhere else: nothing is ever put into a script's text.
// Expressions are CEL, in `if` bare and in a few other places between ${{ and }}; they have no loops.
//
// A file has bounds in bytes, depth, nodes, jobs and legs, so that a hostile one costs what it weighs.
package pipeline
