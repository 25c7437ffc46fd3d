// Package provider makes requests for the APIs of model providers out of a context, and reads their responses.
//
// What it guarantees, for Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini generateContent:
//
//   - A message that an API gave or took goes to the same API byte for byte, white space between JSON tokens aside:
//     store what you send and the Reply.Messages that ReadReply returns, and Convert returns it again. A message is
//     rewritten only where the API would refuse the request with it, and then its other blocks keep their bytes.
//   - What no API has (compactionSummary, branchSummary, custom, bashExecution), and the messages of other providers,
//     become messages of this one. Arguments of tools keep every digit and escape.
//   - The messages fit together by the written rules of the API (docs/provider.md lists them with their sources): each
//     call is answered directly after it, in one message where the API wants that; ids of calls and names of tools are
//     in the form that it takes; no content is empty.
//   - Nothing is left out in silence: Request.Lost names it, with the message it belongs to.
//
// Convert is a function of its arguments: it sends nothing, and reads nothing but images through Options.Blob.
//
//	w, err := session.Context(ctx)
//	req, err := provider.Convert(ctx, w, provider.Anthropic, nil)
//	body := map[string]any{"model": model, "max_tokens": 8192, "system": req.System, "messages": req.Messages}
//	... send the body, read the response ...
//	reply, err := provider.ReadReply(provider.Anthropic, response)
//	for _, m := range reply.Messages { session.Append(ctx, entry.Message(m)) }
//
// Time and memory are linear in the bytes of the context (I15). Functions are safe for concurrent use.
package provider
