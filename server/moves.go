package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// switchBody is the place to switch to.
type switchBody struct {
	To string `json:"to" minLength:"1" doc:"a branch, or an entry: then the newest leaf below it"`
}

// branchBody is the place where a branch begins.
type branchBody struct {
	Entry   string `json:"entry" doc:"the entry after which to go on; empty = before the first"`
	Name    string `json:"name,omitempty" doc:"of the new branch"`
	Summary string `json:"summary,omitempty" doc:"of the path that is left"`
}

// editBody is another version of an entry.
type editBody struct {
	Entry   string          `json:"entry" minLength:"1" doc:"the entry of which it is another version"`
	Message json.RawMessage `json:"message" doc:"a message, or an entry"`
}

// targetBody names a time.
type targetBody struct {
	To string `json:"to" minLength:"1" doc:"a target, as at of state"`
}

// labelBody names an entry for people.
type labelBody struct {
	Entry string `json:"entry" minLength:"1"`
	Label string `json:"label" doc:"empty removes it"`
}

// amendBody is the new content of an entry.
type amendBody struct {
	Entry   string          `json:"entry" minLength:"1"`
	Message json.RawMessage `json:"message,omitempty" doc:"or an entry of its type; null = as it was appended"`
}

// hideBody names an entry that is left out.
type hideBody struct {
	Entry string `json:"entry" minLength:"1"`
}

// renameBody is another name of a branch.
type renameBody struct {
	Branch string `json:"branch" minLength:"1"`
	Name   string `json:"name" doc:"its new name; empty removes the name, and the entries stay"`
}

// snapshotBody names a snapshot.
type snapshotBody struct {
	Tag string `json:"tag,omitempty"`
}

// compactBody is a summary of the context, and what of it is kept.
type compactBody struct {
	Summary string `json:"summary" minLength:"1" doc:"text of the summary"`
	From    string `json:"from,omitempty" doc:"first entry that is kept; default by keep"`
	Keep    int    `json:"keep,omitempty" minimum:"0" doc:"tokens that are kept, by estimate; default 20000"`
}

// noBody is the body of an operation that needs none.
type noBody struct{}

// partialBody is what an assistant has streamed.
type partialBody struct {
	Partial json.RawMessage `json:"partial" doc:"what was streamed so far; null = nothing any more"`
}

// moving makes a move, an annotation or a claim.
type moving[B any] func(context.Context, *coppice.Session, B, ...coppice.MoveOption) (coppice.Receipt, error)

// moveOf registers a move of the head.
func moveOf[B, O any](s *Server, name, summary string, f moving[B]) {
	registerMove[B, O](s, name, summary, ifMatch, []int{409}, f)
}

// noteOf registers an annotation or a claim: it leaves the head where it is, and If-Match is optional.
func noteOf[B, O any](s *Server, name, summary string, f moving[B], errors ...int) {
	registerMove[B, O](s, name, summary, ifMatchMay, errors, f)
}

// unnamed is the writer of a claim whose client does not name itself: it fences all clients that do not either.
const unnamed = "unnamed"

func registerMove[B, O any](s *Server, name, summary string, c condition, errors []int, f moving[B]) {
	handle[keyedWrite, O](s, operation{
		method: "POST", path: "/v1/sessions/{id}/" + name, id: strings.ReplaceAll(name, "-b", "B"),
		summary: summary, body: reflect.TypeFor[B](), names: true, condition: c, errors: errors,
	}, func(ctx context.Context, q *keyedWrite) (answer, error) {
		var b B
		if err := decode(q.r, &b); err != nil {
			return answer{}, err
		}
		writer := q.Writer
		if name == "claim" && writer == "" {
			writer = unnamed
		}
		return s.move(ctx, &q.request, keys{q.Key, writer, name},
			func(ctx context.Context, h *coppice.Session, o ...coppice.MoveOption) (coppice.Receipt, error) {
				return f(ctx, h, b, o...)
			})
	})
}

// ownOf registers an operation on the newest commit that is neither.
func ownOf[B, O any](
	s *Server, name, summary string, f func(context.Context, *coppice.Session, B) (coppice.Receipt, any, error),
	errors ...int,
) {
	handle[sessionPath, O](s, operation{
		method: "POST", path: "/v1/sessions/{id}/" + name, id: name, summary: summary,
		body: reflect.TypeFor[B](), names: len(errors) > 0, condition: ifMatch, errors: errors,
	}, func(ctx context.Context, q *sessionPath) (answer, error) {
		var b B
		if err := decode(q.r, &b); err != nil {
			return answer{}, err
		}
		return s.own(ctx, &q.request, func(ctx context.Context, h *coppice.Session) (coppice.Receipt, any, error) {
			return f(ctx, h, b)
		})
	})
}

func (s *Server) describeMoves() {
	moveOf[switchBody, api.Moved](s, "switch", "Move the head to a branch, with the state in force there",
		func(
			ctx context.Context, h *coppice.Session, b switchBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.Switch(ctx, b.To, o...)
		})
	moveOf[branchBody, api.Moved](s, "branch", "Move the head to an entry, so that the next one begins a branch",
		func(
			ctx context.Context, h *coppice.Session, b branchBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.Branch(ctx, b.Entry, &coppice.BranchOptions{Name: b.Name, Summary: b.Summary}, o...)
		})
	moveOf[editBody, api.Moved](s, "edit", "Append another version of an entry, and move the head to it",
		func(
			ctx context.Context, h *coppice.Session, b editBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			d, err := api.Draft(b.Message)
			if err != nil {
				return coppice.Receipt{}, badInput("message", err)
			}
			return h.Edit(ctx, b.Entry, d, o...)
		})
	moveOf[targetBody, api.Rollback](s, "rollback", "Restore state, context and head as they were", rollback)
	s.describeNotes()
}

func amend(
	ctx context.Context, h *coppice.Session, b amendBody, o ...coppice.MoveOption,
) (r coppice.Receipt, err error) {
	var d transcript.Draft // reverts earlier amendments
	if len(b.Message) > 0 && string(b.Message) != "null" {
		if d, err = api.Draft(b.Message); err != nil {
			return r, badInput("message", err)
		}
	}
	return h.Amend(ctx, b.Entry, d, o...)
}

func rollback(
	ctx context.Context, h *coppice.Session, b targetBody, o ...coppice.MoveOption,
) (coppice.Receipt, error) {
	t, err := target("to", b.To)
	if err != nil {
		return coppice.Receipt{}, err
	}
	return h.Rollback(ctx, t, o...)
}

// movedDoc is the answer to a move of the head, an annotation or a claim; that to a rollback has the state too.
func movedDoc(ctx context.Context, h *coppice.Session, operation string, r coppice.Receipt) (any, error) {
	if operation != "rollback" {
		return api.MovedOf(r), nil
	}
	v, err := h.At(ctx, coppice.Target{Commit: r.Commit})
	if err != nil {
		return nil, err
	}
	return api.RollbackOf(r, v.Document().State), nil
}

// describeNotes registers the commits that leave the head where it is.
func (s *Server) describeNotes() {
	noteOf[labelBody, api.Moved](s, "label", "Name an entry for people; the head stays",
		func(
			ctx context.Context, h *coppice.Session, b labelBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.Label(ctx, b.Entry, b.Label, o...)
		}, 409)
	noteOf[amendBody, api.Moved](s, "amend", "Replace the content of an entry, for all that read it", amend, 409)
	noteOf[hideBody, api.Moved](s, "hide", "Leave an entry out of contexts, paths and trees; amend shows it again",
		func(
			ctx context.Context, h *coppice.Session, b hideBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.Hide(ctx, b.Entry, o...)
		}, 409)
	noteOf[renameBody, api.Moved](s, "rename-branch", "Rename a branch, or remove its name",
		func(
			ctx context.Context, h *coppice.Session, b renameBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.RenameBranch(ctx, b.Branch, b.Name, o...)
		}, 409)
	ownOf[snapshotBody, api.Snapshot](s, "snapshot", "Store the state of the newest commit as a snapshot",
		func(ctx context.Context, h *coppice.Session, b snapshotBody) (coppice.Receipt, any, error) {
			info, err := s.takeSnapshot(ctx, h, b.Tag)
			return coppice.Receipt{Head: h.Head()}, api.SnapshotOf(info), err
		})
	noteOf[noBody, api.Moved](s, "claim", "Take over the session from writers of before",
		func(
			ctx context.Context, h *coppice.Session, _ noBody, o ...coppice.MoveOption,
		) (coppice.Receipt, error) {
			return h.Claim(ctx, o...)
		})
	ownOf[compactBody, api.Compacted](s, "compact", "Replace the older part of the context with a summary",
		func(ctx context.Context, h *coppice.Session, b compactBody) (coppice.Receipt, any, error) {
			if b.Summary == "" || b.Keep < 0 {
				return coppice.Receipt{}, nil, badInput("the body", errors.New("want a summary, and keep of 0 or more"))
			}
			c, err := manager.Compact(ctx, h, &manager.Compaction{Summary: b.Summary, FirstKept: b.From, Keep: b.Keep})
			return c.Receipt, api.CompactedOf(c), err
		}, http.StatusConflict, http.StatusUnprocessableEntity)
	handle[sessionPath, struct{}](s, operation{
		method: "POST", path: "/v1/sessions/{id}/partial", id: "partial", fleeting: true,
		statuses: []int{204},
		summary:  "Say what the assistant has streamed so far, to those who follow the session",
		text:     "No commit: the next one ends it.", body: reflect.TypeFor[partialBody](),
	}, s.partial)
}

func (s *Server) partial(ctx context.Context, q *sessionPath) (answer, error) {
	var b partialBody
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	key := writerKey{q.on.Store, q.id}
	if err := s.writers.look(ctx, key, s.o.Now()); err != nil { // it is no commit, which would find out
		return answer{}, err
	}
	err := s.write(ctx, &q.request, func(ctx context.Context, h *coppice.Session) error {
		return h.Partial(ctx, b.Partial)
	})
	return answer{status: http.StatusNoContent}, err
}

// takeSnapshot stores a snapshot. Where the answer was lost it looks for it, within the time of another commit: what is
// not there may come yet.
func (s *Server) takeSnapshot(ctx context.Context, h *coppice.Session, tag string) (snapshot.Info, error) {
	info, err := h.Snapshot(ctx, tag)
	failed, is := errors.AsType[*backend.Error](err)
	if !is || failed.Outcome != backend.Unknown {
		return info, err
	}
	ctx, cancel := s.detached(ctx)
	defer cancel()
	on := h.Head()
	for found, lerr := range h.Snapshots(ctx) { // newest first
		if lerr != nil || found.Seq < on.Seq {
			break
		}
		if found.Commit == on.Commit && found.Tag == tag {
			return found, nil
		}
	}
	return info, retry(newProblem(http.StatusGatewayTimeout, "outcome-unknown",
		"GET /v1/sessions/{id}/snapshots shows whether it is stored; to repeat the request does no harm: there may be "+
			"two of the same commit then", errors.New(api.Describe(err).Message)))
}
