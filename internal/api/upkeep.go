package api

import (
	"errors"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
)

// Verify is what a check of a session, or of all, found.
type Verify struct {
	Sessions int        `json:"sessions" doc:"number of sessions that were checked"`
	Objects  int        `json:"objects"`
	Bytes    int64      `json:"bytes" doc:"number of bytes that were read"`
	Problems []Damage   `json:"problems" doc:"damage, and notes on what is intact"`
	Deep     bool       `json:"deep" doc:"every byte was read"`
	IO       backend.IO `json:"io" doc:"requests to the backend"`
}

// VerifyOf returns the document of a check.
func VerifyOf(r coppice.Report, deep bool) Verify {
	return Verify{Sessions: r.Sessions, Objects: r.Objects, Bytes: r.Bytes, Problems: damage(r), Deep: deep}
}

// Repair is what a repair, or a removal of objects that are no longer referenced, did.
type Repair struct {
	Sessions int        `json:"sessions"`
	Objects  int        `json:"objects"`
	Removed  int        `json:"removed" doc:"number of objects that were removed, or with dryRun would be"`
	Bytes    int64      `json:"bytes" doc:"of a repair: bytes written; else bytes that were removed"`
	Problems []Damage   `json:"problems"`
	DryRun   bool       `json:"dryRun,omitempty" doc:"nothing was changed"`
	IO       backend.IO `json:"io" doc:"requests to the backend"`
}

// RepairOf returns the document of a repair, or of a removal.
func RepairOf(r coppice.Report, dry bool) Repair {
	return Repair{
		Sessions: r.Sessions, Objects: r.Objects, Removed: r.Removed, Bytes: r.Bytes, Problems: damage(r), DryRun: dry,
	}
}

// Damage is a finding: damage, or a note on something intact.
type Damage struct {
	Session string `json:"session,omitempty"`
	Object  string `json:"object" doc:"key of the object"`
	Offset  int64  `json:"offset" doc:"byte offset in the object"`
	Kind    string `json:"kind"`
	Detail  string `json:"detail"`
	Damage  bool   `json:"damage" doc:"data is lost or cannot be trusted; false: a note"`
	Hint    string `json:"hint,omitempty"`
}

// DamageOf returns the document of a problem.
func DamageOf(p *coppice.Error) Damage {
	out := Damage{
		Session: p.Session, Object: p.Object, Offset: p.Offset, Kind: "other", Detail: oneLine(p.Err.Error()),
		Damage: errors.Is(p, coppice.ErrCorrupt),
	}
	if found, ok := errors.AsType[*check.Problem](p); ok {
		out.Kind, out.Detail = string(found.Kind), oneLine(found.Detail)
	}
	if out.Kind == string(check.Refused) {
		out.Hint = "let this user read the object, and run the command again"
	} else if out.Damage {
		out.Hint = "`coppice repair` recovers the intact data, which can still be read"
	}
	return out
}

func damage(r coppice.Report) []Damage { return convert(r.Problems, DamageOf) }

// CountDamage returns the number of findings that mean a loss of data.
func CountDamage(list []Damage) int {
	n := 0
	for _, d := range list {
		if d.Damage {
			n++
		}
	}
	return n
}
