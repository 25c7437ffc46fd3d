package server

import "context"

type accessQuery struct{ request }

// accessDoc is what a client may do.
type accessDoc struct {
	Rights   []string `json:"rights" doc:"those of read, write, delete, erase, hold and issue (of tokens) that it has"`
	ReadOnly bool     `json:"readOnly" doc:"the server refuses every write, with any token"`
	Tenant   string   `json:"tenant" doc:"the tenant of the path; empty: none"`

	Session string            `json:"session,omitempty" doc:"only this session"`
	Meta    map[string]string `json:"meta,omitempty" doc:"only sessions with this value in their metadata"`
}

func (s *Server) describeAccess() {
	handle[accessQuery, accessDoc](s, operation{
		method: "GET", path: "/v1/access", id: "access", storeless: true, narrows: true,
		summary: "What the client may do, so that it does not offer what would be refused",
	}, func(_ context.Context, q *accessQuery) (answer, error) {
		may := q.on.Rights
		if s.o.ReadOnly {
			may &^= changes
		}
		if s.o.Tokens == nil {
			may &^= Issue
		}
		doc := accessDoc{Rights: may.names(), ReadOnly: s.o.ReadOnly, Tenant: q.r.PathValue("tenant")}
		if doc.Session = q.on.Only.Session; q.on.Only.Key != "" {
			doc.Meta = map[string]string{q.on.Only.Key: q.on.Only.Value}
		}
		return answer{doc: doc}, nil
	})
}
