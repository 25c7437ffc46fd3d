// Package model holds models of the two commit protocols, small enough that every order of events within
// stated bounds can be tried, and the search that tries them.
//
// A model is not the code: it is the protocol as docs/design.md and the code state it, with commits, segments
// and writers as numbers. What the search finds in it is a fault of the protocol, whatever the code that
// carries it out; the crash explorer and the simulation hold the code itself. Each model has switches that
// take one rule away. The search then has to find what goes wrong: a rule whose loss it does not notice is a
// rule that it does not check.
//
// All of it is test code: the replace files model the strategy of stores that replace whole objects, the chain
// files the segments of stores that append, the torn files the bytes after the last commit of one segment (see
// docs/design.md, The protocol); search_test.go tries every order of events, and rows_test.go says within which bounds.
// COPPICE_MODEL=text searches only the rows whose name holds the text; -v prints the shortest way to each
// violation.
package model
