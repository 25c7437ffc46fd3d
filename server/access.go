package server

import "context"

type accessQuery struct{ request }

// accessDoc is what a client may do.
type accessDoc struct {
	Rights   []string `json:"rights" doc:"read; write, unless the token or the server forbids it; issue: of tokens"`
	ReadOnly bool     `json:"readOnly" doc:"the server refuses every write, with any token"`
	Tenant   string   `json:"tenant" doc:"the tenant of the path; empty: none"`

	Session string            `json:"session,omitempty" doc:"only this session"`
	Meta    map[string]string `json:"meta,omitempty" doc:"only sessions with this value in their metadata"`
}

func (s *Server) describeAccess() {
	handle[accessQuery, accessDoc](s, operation{
		method: "GET", path: "/v1/access", id: "access", needs: rightRead, storeless: true, narrows: true,
		summary: "What the client may do, so that it does not offer what would be refused",
	}, func(_ context.Context, q *accessQuery) (answer, error) {
		doc := accessDoc{Rights: []string{"read"}, ReadOnly: s.o.ReadOnly, Tenant: q.r.PathValue("tenant")}
		if q.on.Write && !s.o.ReadOnly {
			doc.Rights = append(doc.Rights, "write")
		}
		if q.on.Issue && s.o.Tokens != nil {
			doc.Rights = append(doc.Rights, "issue")
		}
		if doc.Session = q.on.Only.Session; q.on.Only.Key != "" {
			doc.Meta = map[string]string{q.on.Only.Key: q.on.Only.Value}
		}
		return answer{doc: doc}, nil
	})
}
