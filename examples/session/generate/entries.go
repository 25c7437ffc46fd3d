package main

// The shapes of pi v3 that the session uses. The order of the fields is the order in the file.

type header struct {
	Type      string `json:"type"`
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Cwd       string `json:"cwd"`
}

type base struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`
}

type messageEntry struct {
	base
	Message any `json:"message"`
}

type modelChange struct {
	base
	Provider string `json:"provider"`
	ModelID  string `json:"modelId"`
}

type thinkingChange struct {
	base
	ThinkingLevel string `json:"thinkingLevel"`
}

type compaction struct {
	base
	Summary          string `json:"summary"`
	FirstKeptEntryID string `json:"firstKeptEntryId"`
	TokensBefore     int    `json:"tokensBefore"`
}

type branchSummary struct {
	base
	FromID  string `json:"fromId"`
	Summary string `json:"summary"`
}

type label struct {
	base
	TargetID string `json:"targetId"`
	Label    string `json:"label"`
}

type sessionInfo struct {
	base
	Name string `json:"name"`
}

type customMessage struct {
	base
	CustomType string `json:"customType"`
	Content    string `json:"content"`
	Display    bool   `json:"display"`
}

type userMessage struct {
	Role      string  `json:"role"`
	Content   []block `json:"content"`
	Timestamp int64   `json:"timestamp"`
}

type assistantMessage struct {
	Role         string  `json:"role"`
	Content      []block `json:"content"`
	API          string  `json:"api"`
	Provider     string  `json:"provider"`
	Model        string  `json:"model"`
	Usage        usage   `json:"usage"`
	StopReason   string  `json:"stopReason"`
	Timestamp    int64   `json:"timestamp"`
	ErrorMessage string  `json:"errorMessage,omitempty"`
}

type toolResult struct {
	Role       string   `json:"role"`
	ToolCallID string   `json:"toolCallId"`
	ToolName   string   `json:"toolName"`
	Content    []block  `json:"content"`
	Details    *details `json:"details,omitempty"`
	IsError    bool     `json:"isError"`
	Timestamp  int64    `json:"timestamp"`
}

type details struct {
	Diff string `json:"diff"`
}

type bashExecution struct {
	Role      string `json:"role"`
	Command   string `json:"command"`
	Output    string `json:"output"`
	ExitCode  int    `json:"exitCode"`
	Cancelled bool   `json:"cancelled"`
	Truncated bool   `json:"truncated"`
	Timestamp int64  `json:"timestamp"`
}

type block struct {
	Type      string     `json:"type"`
	Text      string     `json:"text,omitempty"`
	Thinking  string     `json:"thinking,omitempty"`
	ID        string     `json:"id,omitempty"`
	Name      string     `json:"name,omitempty"`
	Arguments *arguments `json:"arguments,omitempty"`
}

type arguments struct {
	Command string `json:"command,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Path    string `json:"path,omitempty"`
	Offset  int    `json:"offset,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	OldText string `json:"oldText,omitempty"`
	NewText string `json:"newText,omitempty"`
	Content string `json:"content,omitempty"`
}

type usage struct {
	Input       int  `json:"input"`
	Output      int  `json:"output"`
	CacheRead   int  `json:"cacheRead"`
	CacheWrite  int  `json:"cacheWrite"`
	TotalTokens int  `json:"totalTokens"`
	Cost        cost `json:"cost"`
}

type cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

func textBlocks(text string) []block { return []block{{Type: "text", Text: text}} }
