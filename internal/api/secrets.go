package api

import "github.com/coppice-go/coppice/manager"

// Secret is a credential in a session.
type Secret struct {
	Session  string `json:"session"`
	In       string `json:"in" doc:"entry, state, document, context, session (title and the like) or original"`
	Entry    string `json:"entry,omitempty" doc:"id of the entry"`
	Document string `json:"document,omitempty" doc:"name of the document"`
	Seq      uint64 `json:"seq,omitempty" doc:"the newest commit whose state, document or context has it"`
	Line     uint64 `json:"line,omitempty" doc:"line of the imported file, from 1"`
	Path     string `json:"path" doc:"JSON pointer to the text in which it is"`
	Rule     string `json:"rule" doc:"id of the rule that found it"`
	Preview  string `json:"preview" doc:"its first characters, at most a quarter of it, and its length"`
}

// SecretOf returns the document of a credential.
func SecretOf(session string, s manager.Secret) Secret {
	return Secret{
		Session: session, In: s.In, Entry: s.Entry, Document: s.Name, Seq: s.Seq, Line: s.Line,
		Path: s.Path, Rule: s.Rule, Preview: s.Preview,
	}
}
