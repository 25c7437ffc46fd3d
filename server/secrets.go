package server

import (
	"context"
	"maps"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/secrets"
)

// Bounds of what one request for the credentials of a session looks at: the next one continues.
const (
	maxSearched      = 2_000   // entries
	maxSearchedBytes = 8 << 20 // of their lines, one more of any size
)

// secretsQuery is the parameters of a page of credentials.
type secretsQuery struct {
	request
	ID    string `path:"id" maxLength:"128" doc:"the session's id"`
	After string `query:"after" doc:"next of the page before"`
}

// secretAt is how many credentials an entry has that no earlier one of the page has.
type secretAt struct {
	In    string `json:"in" enum:"entry,session,state,document" doc:"session = title, directory and metadata"`
	Entry string `json:"entry,omitempty" doc:"its id"`
	Rule  string `json:"rule" doc:"such as github-pat"`
	Count int    `json:"count"`
}

type secretList struct {
	Secrets []secretAt `json:"secrets" doc:"in the order of appending; never the credentials"`
	Next    string     `json:"next,omitempty" doc:"after of the page that follows, also of an empty one"`
}

func (s *Server) describeSecrets() {
	handle[secretsQuery, secretList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/secrets", id: "secrets", whole: true,
		statuses: []int{304},
		summary:  "How many credentials a session has, by rule",
		text: "A request looks at no more than 2,000 entries and 8 MiB, of all branches, as they are amended; the " +
			"last page also at the title, the newest state and documents. `coppice secrets` looks at everything.",
	}, s.secrets)
}

func (s *Server) secrets(ctx context.Context, q *secretsQuery) (answer, error) {
	after, err := place("after", q.After)
	if err != nil {
		return answer{}, err
	}
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		p := secretPage{doc: secretList{Secrets: []secretAt{}}, seen: map[uint64]bool{}}
		n, size := 0, 0
		list := coppice.Page{All: true, After: after, Limit: maxSearched + 1}
		for e, err := range h.Page(coppice.ImageRefs(ctx), list) {
			if err != nil {
				return answer{}, err
			}
			if n == maxSearched || size > maxSearchedBytes {
				p.doc.Next = cursor(after)
				break
			}
			p.look(manager.InEntry, e.ID, e.Raw)
			n, size, after = n+1, size+len(e.Raw), e.ID
		}
		if p.doc.Next == "" {
			err = p.newest(ctx, h)
		}
		return answer{etag: h.Head().Commit, doc: p.doc}, err
	})
}

// secretPage is a page of credentials on its way.
type secretPage struct {
	doc  secretList
	seen map[uint64]bool // hashes of credentials
}

// newest looks at what is not in entries: title, directory and metadata, the newest state and documents.
func (p *secretPage) newest(ctx context.Context, h *coppice.Session) error {
	v, err := h.At(ctx, coppice.Target{})
	if err != nil {
		return err
	}
	info, doc := h.Info(), v.Document()
	about, err := rawjson.Marshal("session", map[string]any{"title": info.Title, "cwd": info.Cwd, "meta": info.Meta})
	if err != nil {
		return err
	}
	p.look(manager.InSession, "", about)
	p.look(manager.InState, "", doc.State)
	for _, name := range slices.Sorted(maps.Keys(doc.Docs)) {
		p.look(manager.InDocument, "", doc.Docs[name])
	}
	return nil
}

// look adds the credentials in JSON that are new.
func (p *secretPage) look(in, entry string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	at := len(p.doc.Secrets)
	for _, found := range secrets.FindJSON(raw) {
		if p.seen[found.Hash] {
			continue
		}
		p.seen[found.Hash] = true
		list := p.doc.Secrets[at:]
		if i := slices.IndexFunc(list, func(s secretAt) bool { return s.Rule == found.Rule }); i >= 0 {
			list[i].Count++
		} else {
			p.doc.Secrets = append(p.doc.Secrets, secretAt{in, entry, found.Rule, 1})
		}
	}
}
