package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// Bounds of the time in which a short-lived token is valid.
const (
	defaultAge = time.Hour
	maxAge     = 24 * time.Hour
)

// newToken is the body that asks for a short-lived token.
type newToken struct {
	Write   bool              `json:"write,omitempty" doc:"the rights are read,write"`
	Rights  string            `json:"rights,omitempty" doc:"as in the token file, none that the one who asks has not"`
	Session string            `json:"session,omitempty" doc:"the one session that it is for"`
	Meta    map[string]string `json:"meta,omitempty" doc:"one key: only for sessions with this value in their metadata"`
	Seconds *int              `json:"seconds,omitempty" doc:"for which it is valid, 1 to 86,400; default 3,600"`
}

// issuedToken is a short-lived token.
type issuedToken struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

type issueQuery struct{ request }

func (s *Server) describeIssue() {
	handle[issueQuery, issuedToken](s, operation{
		method: "POST", path: "/v1/tokens", id: "issueToken", storeless: true,
		summary: "A token for one session, or for some, that is valid for a time",
		text: "For a page in a browser. It is known to this server alone, until it ends; a stream that began with it " +
			"lasts for up to 10 minutes more.",
		body: reflect.TypeFor[newToken](), size: sizeNote, statuses: []int{201}, errors: []int{503},
	}, s.issue)
}

func (s *Server) issue(_ context.Context, q *issueQuery) (answer, error) {
	var b newToken
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	seconds := int(defaultAge / time.Second)
	if b.Seconds != nil {
		seconds = *b.Seconds
	}
	rights, err := Read, error(nil)
	if b.Rights != "" {
		rights, err = parseRights(b.Rights)
	} else if b.Write {
		rights |= Write | q.on.Rights&Delete
	}
	only := Only{Session: b.Session}
	for only.Key, only.Value = range b.Meta {
	}
	switch {
	case s.o.Tokens == nil:
		return answer{}, newProblem(http.StatusForbidden, "permission", "", errors.New("the server has no tokens"))
	case err != nil:
		return answer{}, badInput("rights", err)
	case b.Write && !rights.has(Write):
		return answer{}, badInput("rights", errors.New("write is true, and they do not have it"))
	case !q.on.Rights.has(rights), rights.has(Issue), rights&changes != 0 && s.o.ReadOnly:
		return answer{}, ErrForbidden
	case seconds < 1 || seconds > int(maxAge/time.Second):
		return answer{}, badInput("seconds", errors.New("want 1 to 86,400"))
	case (b.Session != "") == (len(b.Meta) > 0) || len(b.Meta) > 1 || len(b.Meta) == 1 && only.Key == "":
		return answer{}, badInput("the body", errors.New("want either session, or meta with one key"))
	}
	g := grant{tenant: q.r.PathValue("tenant"), alone: true, rights: rights, only: only, who: q.on.Who}
	token, until, err := s.o.Tokens.issue(q.r, g, time.Duration(seconds)*time.Second)
	if err == nil {
		seenOf(q.r).ids = []string{shortName(token)}
	}
	q.w.Header().Set("Cache-Control", "no-store")
	return answer{status: http.StatusCreated, doc: issuedToken{token, until.UTC()}}, err
}

// narrowed refuses what is not in a narrowed access. Operations that narrow themselves are not refused.
func (s *Server) narrowed(r *http.Request, op *operation, on Access) error {
	id := r.PathValue("id")
	switch {
	case on.Only == Only{}:
		return nil
	case on.Only.Session != "" && op.id != "access":
		if id != on.Only.Session || op.widens {
			return ErrForbidden
		}
		return nil
	case op.narrows:
		return nil
	case id == "" || op.widens:
		return ErrForbidden
	}
	h, err := on.Store.Open(r.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // it wrote nothing
	if value, ok := h.Info().Meta[on.Only.Key]; !ok || value != on.Only.Value {
		return ErrForbidden
	}
	return nil
}
