package formats

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// known lists the types of lines that the reader of each format supports. A nested type, such as that of a payload,
// follows the outer type and a slash. pi's types also apply to the formats of its family.
var known = map[interop.Format]string{
	interop.Pi: "session message model_change thinking_level_change compaction branch_summary custom custom_message " +
		"label session_info leaf usage context_edit active_tools_change " +
		"header value list record lane fact", // of pi's harness
	interop.Omp: "title title_change service_tier_change mode_change ttsr_injection session_init model_usage " +
		"credential_pin reset_boundary",
	interop.Atomic:   "context_compaction session_summary",
	interop.Operator: "session_header metadata channel",
	interop.ClaudeCode: "user assistant progress attachment summary file-history-snapshot file-history-delta " +
		"queue-operation custom-title ai-title agent-name agent-setting agent-color permission-mode mode pr-link " +
		"last-prompt bridge-session worktree-state atis-latch frame-link fork-context-ref teleported-from cost-state " +
		"system/compact_boundary system/microcompact_boundary system/turn_duration system/away_summary " +
		"system/stop_hook_summary system/local_command system/api_error system/bridge_status system/informational " +
		"system/scheduled_task_fire system/",
	interop.Codex: "session_meta turn_context compacted world_state token_usage_record inter_agent_communication " +
		"inter_agent_communication_metadata retained_context security_risk_score realtime_item " +
		"response_item/message response_item/reasoning response_item/function_call " +
		"response_item/function_call_output response_item/custom_tool_call response_item/custom_tool_call_output " +
		"response_item/local_shell_call response_item/local_shell_call_output response_item/web_search_call " +
		"response_item/image_generation_call response_item/tool_search_call response_item/tool_search_output " +
		"response_item/agent_message response_item/ghost_snapshot response_item/compaction " +
		"event_msg/user_message event_msg/agent_message event_msg/agent_reasoning " +
		"event_msg/agent_reasoning_raw_content event_msg/agent_reasoning_section_break event_msg/token_count " +
		"event_msg/task_started event_msg/turn_started event_msg/task_complete event_msg/turn_complete " +
		"event_msg/turn_aborted event_msg/error event_msg/stream_error event_msg/warning " +
		"event_msg/item_started event_msg/item_completed event_msg/context_compacted event_msg/thread_rolled_back " +
		"event_msg/thread_name_updated event_msg/thread_settings_applied event_msg/entered_review_mode " +
		"event_msg/exited_review_mode event_msg/patch_apply_end event_msg/exec_command_end " +
		"event_msg/mcp_tool_call_end event_msg/web_search_end event_msg/view_image_tool_call " +
		"event_msg/guardian_assessment event_msg/sub_agent_activity event_msg/collab_agent_spawn_end " +
		"event_msg/collab_waiting_end event_msg/plan_update " +
		"message reasoning function_call function_call_output custom_tool_call custom_tool_call_output " +
		"local_shell_call local_shell_call_output web_search_call", // without an envelope, in files of 2025
}

// maxUnknown bounds the listed types of a file.
const maxUnknown = 100

// Unknown returns a diagnostic of kind DiagUnknown for each type of line that the reader of a format does not support,
// with the first such line and their number. An import keeps the lines. Unknown reads the file once and holds a line of
// at most maxSettled bytes; it ignores longer lines.
func Unknown(f interop.Format, src interop.Source) (list []transcript.Diagnostic, err error) {
	t, err := Of(f)
	if err != nil {
		return nil, err
	}
	open := src.Open
	if t.Program != nil && t.Program.Open != nil {
		open = func() (io.ReadCloser, error) { return t.Program.Open(src) }
	}
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	of := map[string]bool{}
	for typ := range strings.FieldsSeq(known[f]) {
		of[typ] = true
	}
	if f != interop.ClaudeCode && f != interop.Codex {
		for typ := range strings.FieldsSeq(known[interop.Pi]) {
			of[typ] = true
		}
	}
	u := unknownTypes{known: of, at: map[string]int{}}
	err = eachLine(in, maxTailLine, u.line)
	for name, i := range u.at {
		u.list[i].Detail = fmt.Sprintf("%s, %d of them: kept as they are", name, u.counts[i])
	}
	if u.more > 0 {
		u.list = append(u.list, transcript.Diagnostic{
			Kind: transcript.DiagUnknown, Detail: fmt.Sprintf("%d lines of further types", u.more),
		})
	}
	return u.list, err
}

// unknownTypes counts lines by type.
type unknownTypes struct {
	known  map[string]bool
	at     map[string]int // index in list, by name
	list   []transcript.Diagnostic
	counts []int
	more   int // lines beyond maxUnknown types
}

// line counts a line. number begins with 1. Lines that are not JSON objects have diagnostics of their own.
func (u *unknownTypes) line(number int, line []byte) {
	line = line[min(rawjson.Space(line, 0), len(line)):]
	if len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return
	}
	if end, err := rawjson.ValueEnd(line, 0, rawjson.MaxDepth); err != nil || rawjson.Space(line, end) < len(line) {
		return
	}
	if line[0] == '{' {
		u.object(number, line)
		return
	}
	for m := rawjson.Walk(line); m.Next(); {
		if m.Val[0] == '{' {
			u.object(number, m.Val)
		}
	}
}

func (u *unknownTypes) object(number int, object []byte) {
	name := typeOf(object)
	if name == "" || u.known[name] {
		return
	}
	const most = 80
	name = fmt.Sprintf("%.*q", most, name)
	i, ok := u.at[name]
	switch {
	case ok:
		u.counts[i]++
	case len(u.list) == maxUnknown:
		u.more++
	default:
		u.at[name] = len(u.list)
		u.list = append(u.list, transcript.Diagnostic{Kind: transcript.DiagUnknown, Ordinal: uint64(number)})
		u.counts = append(u.counts, 1)
	}
}

// typeOf returns the type of an object, with the nested type; "" = it has none, or other fields identify it.
func typeOf(object []byte) string {
	text := func(of []byte, name string) string { return rawjson.Text(rawjson.Field(of, name)) }
	typ, kind := text(object, "type"), text(object, "kind")
	switch {
	case typ == "response_item", typ == "event_msg":
		return typ + "/" + text(rawjson.Field(object, "payload"), "type")
	case typ == "system":
		return typ + "/" + text(object, "subtype")
	case kind != "" && kind != "entry" && rawjson.Field(object, "uuid") == nil:
		return cmp.Or(typ, kind)
	}
	return typ
}

// eachLine calls take with every line of a file of at most most bytes, and its number from 1.
func eachLine(in io.Reader, most int, take func(number int, line []byte)) error {
	r := bufio.NewReaderSize(in, headBytes)
	var line []byte
	for number, long := 1, false; ; {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("read: %w", err)
		}
		if !long {
			take(number, slices.Clip(line))
		}
		if err != nil {
			return nil
		}
		number, line, long = number+1, line[:0], false
	}
}
