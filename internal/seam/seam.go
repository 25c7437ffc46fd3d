// Package seam lets tests of this module change how a store's sessions work: how they wait, where background work runs,
// the limits of the protocol; and it lets retention reach the objects of a store that are of no session. No program
// needs that, so package coppice has no options for it.
package seam

import "github.com/coppice-go/coppice/internal/journal"

// Config returns the configuration that a *coppice.Store copies for each session, to be changed before the first one is
// opened. Sleep may change later. Package coppice sets it.
var Config func(store any) *journal.Config

// Large sets how many sessions make a *coppice.Store large, whose lists may be answered from its catalogue, and how
// many rows a block of that has. Package coppice sets it.
var Large func(store any, sessions, rows int)
