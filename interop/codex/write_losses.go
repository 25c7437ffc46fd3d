package codex

import "fmt"

// Kinds of losses.
const (
	lostTitle     = "titles: Codex keeps them in session_index.jsonl"
	lostThinking  = "thinking that did not come from Codex"
	lostStop      = "answers that did not come to an end: why is not said"
	lostError     = "errors of answers"
	lostBroken    = "answers that failed or were aborted before a tool ran: left out, they are no words of the model"
	lostCost      = "costs of messages"
	lostProvider  = "answers of other providers than the file's: Codex has one for a session"
	lostLevel     = "thinking levels that Codex does not have"
	lostCall      = "calls without a tool's name"
	lostToolName  = "names of tools that OpenAI would refuse: other letters in them are underscores"
	lostCallID    = "ids of calls that OpenAI would refuse, or that another one has: they got one of their own"
	lostAborted   = "calls that nobody answered: answered with \"aborted\", as Codex does"
	lostResult    = "results whose call is not there: written as text"
	lostFailed    = "failures of tools: only their text says so"
	lostDetails   = "details of results of tools"
	lostCommand   = "commands of the user: written as Codex's own"
	lostHidden    = "commands that models were not to see"
	lostTold      = "messages of programs: written as the developer's, without their kind"
	lostSummary   = "branch summaries: written as the developer's messages"
	lostEmpty     = "messages without content that Codex can send"
	lostKept      = "compactions that keep more than 32 MiB: the summary alone counts"
	lostEncrypted = "compactions whose history only the provider can read: their summary counts"
	lostEdit      = "edits of the context: it shows what was edited"
	lostSealed    = "parts of messages that only the provider can read"
	lostCustom    = "entries of programs (custom)"
	lostLine      = "lines of Codex's own account, and of kinds that it does not load: it makes them again"
	lostAdded     = "entries added since: the compressed original is damaged, and nothing can stand behind it"
)

func lostEntryType(typ string) string {
	const most = 40
	return fmt.Sprintf("entries of type %.*q", most, typ)
}
