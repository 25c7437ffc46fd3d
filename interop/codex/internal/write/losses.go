package write

import "fmt"

// Kinds of losses.
const (
	LostTitle     = "titles: Codex keeps them in session_index.jsonl"
	LostThinking  = "thinking that did not come from Codex"
	LostStop      = "answers that did not come to an end: why is not said"
	LostError     = "errors of answers"
	LostCost      = "costs of messages"
	LostProvider  = "answers of other providers than the file's: Codex has one for a session"
	LostLevel     = "thinking levels that Codex does not have"
	LostCall      = "calls without a tool's name"
	LostToolName  = "names of tools that OpenAI would refuse: other letters in them are underscores"
	LostCallID    = "ids of calls that OpenAI would refuse, or that another one has: they got one of their own"
	LostAborted   = "calls that nobody answered: answered with \"aborted\", as Codex does"
	LostResult    = "results whose call is not there: written as text"
	LostFailed    = "failures of tools: only their text says so"
	LostDetails   = "details of results of tools"
	LostCommand   = "commands of the user: written as Codex's own"
	LostHidden    = "commands that models were not to see"
	LostTold      = "messages of programs: written as the developer's, without their kind"
	LostSummary   = "branch summaries: written as the developer's messages"
	LostEmpty     = "messages without content that Codex can send"
	LostKept      = "compactions that keep more than 32 MiB: the summary alone counts"
	LostEncrypted = "compactions whose history only the provider can read: their summary counts"
	LostEdit      = "edits of the context: it shows what was edited"
	LostSealed    = "parts of messages that only the provider can read"
	LostCustom    = "entries of programs (custom)"
	LostLine      = "lines of Codex's own account, and of kinds that it does not load: it makes them anew"
	LostAdded     = "entries added since: the compressed original is damaged, and nothing can stand behind it"
)

func lostType(typ string) string {
	const most = 40
	return fmt.Sprintf("entries of type %.*q", most, typ)
}
