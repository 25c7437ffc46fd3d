package coppice

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Earlier releases stored bytes that are not valid UTF-8. These stay in the store as they are; reads return U+FFFD in
// their place. images.text does so for entries, putBack for contexts, this file for everything else.

// readable returns a document as callers get it.
func readable(d checkpoint.Document) checkpoint.Document {
	for _, p := range []*json.RawMessage{&d.State, &d.Manager} {
		*p = rawjson.ValidText(*p)
	}
	d.Docs = readableDocs(d.Docs)
	if slices.ContainsFunc(d.Context, func(it transcript.Item) bool { return !utf8.Valid(it.Message) }) {
		d.Context = slices.Clone(d.Context)
		for i := range d.Context {
			d.Context[i].Message = rawjson.ValidText(d.Context[i].Message)
		}
	}
	return d
}

// readableDocs returns documents as callers get them.
func readableDocs(docs map[string]json.RawMessage) map[string]json.RawMessage {
	for _, p := range docs {
		if utf8.Valid(p) {
			continue
		}
		docs = maps.Clone(docs)
		for name, p := range docs {
			docs[name] = rawjson.ValidText(p)
		}
		return docs
	}
	return docs
}

// readableInfo returns a summary as callers get it.
func readableInfo(sum checkpoint.Summary) checkpoint.Summary {
	for _, text := range []*string{&sum.Branch, &sum.Title, &sum.Cwd, &sum.Parent, &sum.Preview, &sum.First} {
		if !utf8.ValidString(*text) {
			*text = string(rawjson.ValidText([]byte(*text)))
		}
	}
	sum.Docs = readableDocs(sum.Docs)
	return sum
}
