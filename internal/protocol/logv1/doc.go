// Package logv1 holds the messages of logs: frames on a stream of their own for each attempt, and on the control stream
// what was stored, where to go on, and how a log is sealed. All kinds of output of an attempt share one sequence (09§85).
//
// Pure: forms and their validation.
package logv1
