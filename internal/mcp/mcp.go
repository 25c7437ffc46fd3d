// Package mcp answers messages of the Model Context Protocol: tools and resources with which a program that runs a
// model reads the sessions of a store, and if it may, labels entries and begins branches.
//
// Guarantees:
//
//   - A tool is one or two requests to the HTTP service, in the same process: what a request may do is decided there,
//     and answers are its documents.
//   - A tool that writes is neither listed nor called unless Server.Write is set.
//   - The text of a result has at most MaxResult bytes. What is longer comes in pieces, or is refused.
//   - There is no session: no message depends on an earlier one, and any server answers any of them.
//
// Protocol versions are Versions. The transports are Serve, for lines on two streams, and package server, for HTTP.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/coppice-go/coppice/internal/api"
)

// Versions are the protocol versions that are spoken, the newest first. In what is served here they differ by nothing.
var Versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	// MaxMessage bounds a message of a client, in bytes.
	MaxMessage = 64 << 10
	// MaxResult bounds the text of a result, in bytes: about 8,000 tokens, and clients pass on
	// 10,000 or more.
	MaxResult = 32 << 10
)

// Server answers messages. Its fields do not change while it is in use.
type Server struct {
	API    http.Handler // the HTTP service
	Host   string       // by which it is called
	Prefix string       // precedes its paths, such as /t/NAME
	Header http.Header  // of requests: the credentials of the client
	Write  bool         // tools that write are offered
}

// Codes of errors, of JSON-RPC and of MCP.
const (
	codeParse      = -32700
	codeRequest    = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeInternal   = -32603
	codeNoResource = -32002
)

// rpcError is an error as JSON-RPC has it.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

func failure(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// message is a request, a notification (no id) or a response (no method) of a client.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// response is the answer to a request.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

var nullID = json.RawMessage("null")

// parse reads a message.
func parse(raw []byte) (m message, err *rpcError) {
	if !json.Valid(raw) {
		return message{}, failure(codeParse, "the message is not JSON")
	}
	if json.Unmarshal(raw, &m) != nil || m.Version != "2.0" {
		return message{}, failure(codeRequest, "the message is not one object of JSON-RPC 2.0")
	}
	if len(m.ID) > 0 && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
		return message{}, failure(codeRequest, "the id is neither a string nor a number")
	}
	return m, nil
}

// Answer returns the answer to a message; nil = it needs none.
func (s *Server) Answer(ctx context.Context, raw []byte) []byte {
	m, err := parse(raw)
	if err != nil {
		return encode(response{ID: nullID, Error: err})
	}
	return s.answer(ctx, m)
}

func (s *Server) answer(ctx context.Context, m message) []byte {
	if m.ID == nil || m.Method == "" {
		return nil
	}
	result, err := s.call(ctx, m)
	if err == nil {
		return encode(response{ID: m.ID, Result: result})
	}
	own, is := errors.AsType[*rpcError](err)
	if !is {
		own = failure(codeInternal, "%v", err)
	}
	return encode(response{ID: m.ID, Error: own})
}

// Refuse returns the answer to a message whose protocol version is not spoken.
func Refuse(version string) []byte {
	err := failure(codeRequest, "protocol version %.40q is not spoken here", version)
	err.Data = map[string]any{"supported": Versions, "requested": version}
	return encode(response{ID: nullID, Error: err})
}

func encode(r response) []byte {
	r.Version = "2.0"
	raw, err := api.Marshal(r)
	if err != nil {
		raw, _ = api.Marshal(response{Version: "2.0", ID: r.ID, Error: failure(codeInternal, "%v", err)})
	}
	return raw
}

// call answers a request by its method.
func (s *Server) call(ctx context.Context, m message) (any, error) {
	switch m.Method {
	case "initialize":
		return s.initialize(m.Params)
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return map[string]any{"tools": s.list()}, nil
	case "tools/call":
		return s.callTool(ctx, m.Params)
	case "resources/list":
		return s.resources(ctx, m.Params)
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": templates}, nil
	case "resources/read":
		return s.readResource(ctx, m.Params)
	}
	return nil, failure(codeMethod, "there is no method %.80q", m.Method)
}

// params reads the parameters of a method.
func params(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(codeParams, "params: %v", err)
	}
	return nil
}

const instructions = "coppice keeps conversations of AI agents as trees: every branch, and the agent's state at " +
	"every commit. Begin with search_history or list_sessions, continue with read_session. Ids are opaque. " +
	"A point in time (at, a, b) is head, seq:12, commit:ID, entry:ID, tag:NAME, the name of a branch or a time " +
	"such as 2026-03-02T09:15:00Z."

func (s *Server) initialize(raw json.RawMessage) (any, error) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	if !slices.Contains(Versions, p.ProtocolVersion) {
		p.ProtocolVersion = Versions[0]
	}
	return map[string]any{
		"protocolVersion": p.ProtocolVersion,
		"capabilities":    map[string]any{"tools": struct{}{}, "resources": struct{}{}},
		"serverInfo":      map[string]any{"name": "coppice", "version": version()},
		"instructions":    instructions,
	}, nil
}

// version returns the version of the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
