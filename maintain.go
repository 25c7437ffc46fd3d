package coppice

import (
	"context"
)

// Verify reads a session, "" = every session, and reports what is damaged or missing. deep reads the
// bodies as well. It changes nothing; damage is in the report, an error says that it could not look.
func (s *Store) Verify(ctx context.Context, id string, deep bool) (Report, error) { panic("soon") }

// Repair makes a damaged session usable again: what is intact is salvaged, and nothing is destroyed.
// With dryRun it only says what it would do.
func (s *Store) Repair(ctx context.Context, id string, dryRun bool) (Report, error) { panic("soon") }

// GC removes the objects of a session, "" = of every session, that nothing can ever refer to again.
func (s *Store) GC(ctx context.Context, id string, dryRun bool) (Report, error) { panic("soon") }
