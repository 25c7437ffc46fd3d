package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// newHold is the body that holds a session.
type newHold struct {
	Reason string `json:"reason" minLength:"1" doc:"at most 1 KiB"`
}

func (s *Server) describeHold() {
	handle[keyedWrite, api.Moved](s, operation{
		method: "PUT", path: "/v1/sessions/{id}/hold", id: "hold", summary: "Hold a session: nothing removes it",
		text: "Until it is released, its deletion, an erasure in it and retention are 409 held. Commits go on. " +
			"The reason is its metadata coppice.hold, which nothing else changes.",
		body: reflect.TypeFor[newHold](), size: sizeNote, condition: ifMatchMay,
		errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, q *keyedWrite) (answer, error) {
		var b newHold
		if err := decode(q.r, &b); err != nil {
			return answer{}, err
		}
		if b.Reason == "" {
			return answer{}, badInput("the body", errors.New("a hold has a reason; DELETE ends it"))
		}
		return s.move(ctx, &q.request, keys{q.Key, q.Writer, "hold"},
			func(ctx context.Context, h *coppice.Session, o ...coppice.MoveOption) (coppice.Receipt, error) {
				return h.Hold(ctx, b.Reason, o...)
			})
	})
	handle[keyedWrite, api.Moved](s, operation{
		method: "DELETE", path: "/v1/sessions/{id}/hold", id: "release", summary: "End the hold of a session",
		condition: ifMatchMay, errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, q *keyedWrite) (answer, error) {
		return s.move(ctx, &q.request, keys{q.Key, q.Writer, "release"},
			func(ctx context.Context, h *coppice.Session, o ...coppice.MoveOption) (coppice.Receipt, error) {
				return h.Hold(ctx, "", o...)
			})
	})
}
