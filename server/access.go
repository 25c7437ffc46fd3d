package server

import "context"

type accessQuery struct{ request }

// accessDoc is what a client may do.
type accessDoc struct {
	Rights   []string `json:"rights" doc:"read; and write, unless the token or the server forbids it"`
	ReadOnly bool     `json:"readOnly" doc:"the server refuses every write, with any token"`
	Tenant   string   `json:"tenant" doc:"the tenant of the path; empty: none"`
}

func (s *Server) describeAccess() {
	handle[accessQuery, accessDoc](s, operation{
		method: "GET", path: "/v1/access", id: "access", needs: rightRead, storeless: true,
		summary: "What the client may do, so that it does not offer what would be refused",
	}, func(_ context.Context, q *accessQuery) (answer, error) {
		doc := accessDoc{Rights: []string{"read"}, ReadOnly: s.o.ReadOnly, Tenant: q.r.PathValue("tenant")}
		if q.on.Write && !s.o.ReadOnly {
			doc.Rights = append(doc.Rights, "write")
		}
		return answer{doc: doc}, nil
	})
}
