// Package model holds models of the commit protocols that are small enough for an exhaustive search of all orders of
// events within stated bounds, and that search.
//
// A model is the protocol as the documentation states it, with commits, segments and writers as numbers. A violation
// found in it is a fault of the protocol, not of the code; the crash explorer and the simulation check the code. Each
// model has switches that leave one rule out or break it. The search must then find a violation: otherwise the model
// does not check that rule.
//
// All of it is test code. There are four models:
//
//   - turn: one handle that writes one turn at a time under one lock (ADR 0036). Its state is the lines of the log, how
//     far they are durable, one delayed request, the handle (view, tip, buffer, own claims, lock, doubt), the phase and
//     the answer of each call, and what each caller was last shown. Two callers use the handle; another writer keeps
//     all rules and does each of its requests in one step. Both strategies have the same rules and differ in how a
//     request fails.
//   - replace: segments, snapshots, images, deletion and collection on stores that replace whole objects.
//   - chain: the segments of a log.
//   - torn: the bytes after the last commit of one segment.
//
// The turn model is split into scenarios: which operations the callers have, and how often the other writer commits and
// the store or the process fails, usually once each. A scenario has at most 6 operations and 8 lines, 3 of them in a
// request; the search tries every order. Random walks then mix two scenarios at twice these sizes.
//
// search_test.go tries every order of events; rows_test.go and turn_scenarios_test.go list bounds and broken rules. `go
// test` searches the small rows, COPPICE_PROOF=ci (make proof) all that each change has to pass, and
// COPPICE_PROOF=nightly the largest. COPPICE_MODEL=text searches only the rows whose name contains the text; -v prints
// the shortest path to each violation.
package model
