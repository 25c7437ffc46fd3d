package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/coppice-go/coppice/internal/mcp"
)

// mcpPath is where clients of the Model Context Protocol find the server. Each message is a request with an answer of
// its own: there are no streams, and no sessions.
const mcpPath = "/mcp"

// mcpVersion is the header with the protocol version of a message.
const mcpVersion = "Mcp-Protocol-Version"

func (s *Server) serveMCP() {
	s.serveForeign(operation{
		method: "POST", path: mcpPath, id: "mcp", storeless: true, narrows: true, size: sizeNote,
	}, []string{"write"}, s.answerMCP)
}

// answerMCP answers a message of a client by requests with the client's rights.
func (s *Server) answerMCP(ctx context.Context, q *request) (answer, error) {
	write := q.r.URL.Query().Get("write")
	if write != "" && write != "true" {
		return answer{}, badInput("write", errors.New("want true"))
	}
	raw, err := io.ReadAll(q.r.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the message: %w", err)
	}
	status, reply := http.StatusOK, []byte(nil)
	if v := q.r.Header.Get(mcpVersion); v != "" && !slices.Contains(mcp.Versions, v) {
		status, reply = http.StatusBadRequest, mcp.Refuse(v)
	} else if reply = s.speaker(q.r, write != "").Answer(ctx, raw); reply == nil {
		return answer{status: http.StatusAccepted}, nil
	}
	return answer{stream: func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(reply, '\n')) // a client that left reads nothing
		return nil
	}}, nil
}

// speaker answers messages of the client that sent a request.
func (s *Server) speaker(r *http.Request, write bool) *mcp.Server {
	h := http.Header{}
	for _, name := range []string{"Authorization", "Cookie"} {
		if v := r.Header.Values(name); len(v) > 0 {
			h[name] = v
		}
	}
	return &mcp.Server{
		API: s, Host: r.Host, Prefix: r.PathValue("prefix"), Header: h, Write: write && !s.o.ReadOnly,
	}
}
