package server

import (
	"errors"
	"strings"
)

// Rights are what a request may do.
type Rights uint8

// The rights. None has another one in it; only in lists of names write adds delete, see parseRights.
const (
	Read   Rights = 1 << iota // of everything, but the secrets of the server
	Write                     // new sessions, commits, and all that hides or deletes nothing for good
	Delete                    // of whole sessions
	Erase                     // of the content of entries
	Hold                      // setting and ending of legal holds
	Issue                     // of short-lived tokens, POST /v1/tokens

	Admin = Read | Write | Delete | Erase | Hold | Issue
)

// changes are the rights that a server refuses which is read-only.
const changes = Write | Delete | Erase | Hold

// has reports whether all of these rights are there.
func (r Rights) has(all Rights) bool { return r&all == all }

// rightNames are the rights with their names, in the order in which they are listed.
var rightNames = []struct {
	right Rights
	name  string
}{
	{Read, "read"}, {Write, "write"}, {Delete, "delete"}, {Erase, "erase"}, {Hold, "hold"}, {Issue, "issue"},
}

// names returns the names of the rights.
func (r Rights) names() (names []string) {
	for _, n := range rightNames {
		if r.has(n.right) {
			names = append(names, n.name)
		}
	}
	return names
}

func (r Rights) String() string { return strings.Join(r.names(), ",") }

// errRights is the error of a list of rights that is none. It does not repeat the list, which might be a secret.
var errRights = errors.New(
	"the rights are not read, and after commas write, delete, erase, hold and issue, or -delete, or admin alone")

// parseRights reads a list of rights. The first one is read; admin alone means all of them. write adds delete, unless
// the list has -delete: lists are older than the right to delete, which was a part of write.
func parseRights(text string) (r Rights, err error) {
	if text == "admin" {
		return Admin, nil
	}
	keeps := false
	for i, word := range strings.Split(text, ",") {
		one := Rights(0)
		for _, n := range rightNames {
			if n.name == word {
				one = n.right
			}
		}
		switch {
		case word == "-delete" && !keeps:
			keeps = true
		case one == 0, r.has(one), i == 0 && one != Read:
			return 0, errRights
		}
		r |= one
	}
	switch {
	case keeps && (!r.has(Read|Write) || r.has(Delete)):
		return 0, errRights
	case r.has(Write) && !keeps:
		r |= Delete
	}
	return r, nil
}

// rule is what is asked before an operation begins.
type rule struct {
	needs Rights // 0 = not even a token
	audit string // the act, if it is an administrative one
}

// rules has every operation of the server by its id, of our API and of others'. New panics if one is missing.
var rules = map[string]rule{
	"health":  {},
	"openapi": {},

	"access":       {needs: Read},
	"allUsage":     {needs: Read},
	"blame":        {needs: Read},
	"blob":         {needs: Read},
	"branches":     {needs: Read},
	"context":      {needs: Read},
	"diff":         {needs: Read},
	"docs":         {needs: Read},
	"events":       {needs: Read},
	"export":       {needs: Read},
	"getCommit":    {needs: Read},
	"getDoc":       {needs: Read},
	"getEntry":     {needs: Read},
	"getRetention": {needs: Read},
	"getSession":   {needs: Read},
	"labels":       {needs: Read},
	"listCommits":  {needs: Read},
	"listEntries":  {needs: Read},
	"listSessions": {needs: Read},
	"map":          {needs: Read},
	"mcp":          {needs: Read}, // each tool is a request of its own, with the token of the message
	"metrics":      {needs: Read},
	"original":     {needs: Read},
	"prompts":      {needs: Read},
	"queryEntries": {needs: Read},
	"resume":       {needs: Read},
	"rows":         {needs: Read},
	"search":       {needs: Read},
	"secrets":      {needs: Read},
	"snapshots":    {needs: Read},
	"state":        {needs: Read},
	"usage":        {needs: Read},
	"verify":       {needs: Read},
	"versions":     {needs: Read},

	"amend":         {needs: Write},
	"branch":        {needs: Write},
	"changeSession": {needs: Write},
	"claim":         {needs: Write},
	"commit":        {needs: Write},
	"compact":       {needs: Write},
	"createSession": {needs: Write},
	"edit":          {needs: Write},
	"fork":          {needs: Write},
	"hide":          {needs: Write},
	"import":        {needs: Write, audit: "import"},
	"label":         {needs: Write},
	"partial":       {needs: Write},
	"renameBranch":  {needs: Write},
	"rollback":      {needs: Write},
	"snapshot":      {needs: Write},
	"switch":        {needs: Write},
	"upload":        {needs: Write},

	"hold":          {needs: Hold, audit: "hold"},
	"release":       {needs: Hold, audit: "release"},
	"deleteSession": {needs: Delete, audit: "delete"},
	"erase":         {needs: Erase, audit: "erase"},
	"runRetention":  {needs: Delete, audit: "run retention"},
	"setRetention":  {needs: Admin, audit: "set retention"},
	"issueToken":    {needs: Issue, audit: "issue"},

	"openaiAdd":    {needs: Write},
	"openaiCreate": {needs: Write},
	"openaiDelete": {needs: Delete, audit: "delete"},
	"openaiGet":    {needs: Read},
	"openaiItem":   {needs: Read},
	"openaiItems":  {needs: Read},
	"openaiRemove": {needs: Write}, // it hides an entry
	"openaiUpdate": {needs: Write},
}

// ruled returns the operation with its rule.
func (op operation) ruled() operation {
	r, ok := rules[op.id]
	if !ok {
		panic("operation " + op.id + " has no rule") // when the server is made
	}
	op.rule = r
	return op
}
