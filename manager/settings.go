package manager

import (
	"encoding/json"
	"slices"

	"github.com/coppice-go/coppice/transcript"
)

// Settings are the settings in force on a path, in the formats of all supported agents.
type Settings struct {
	Models        map[string]string `json:"models"` // by role, "provider/id"; "default" = the model that answers
	ThinkingLevel string            `json:"thinkingLevel"`
	// the user's choice, if it differs
	Configured    string          `json:"configuredThinkingLevel,omitempty"`
	ServiceTier   string          `json:"serviceTier,omitempty"` // "" = the default one
	Mode          string          `json:"mode"`                  // "none" = none
	ModeData      json.RawMessage `json:"modeData,omitempty"`
	Tools         []string        `json:"tools,omitempty"`         // the active ones, if an entry lists them
	InjectedRules []string        `json:"injectedRules,omitempty"` // each once, in order of their injection
	Title         string          `json:"title,omitempty"`
}

// settingsChange holds the fields of all kinds of settings entries.
type settingsChange struct {
	Model      string          `json:"model"`
	ModelID    string          `json:"modelId"`
	Provider   string          `json:"provider"`
	Role       string          `json:"role"`
	Thinking   string          `json:"thinkingLevel"`
	Configured string          `json:"configured"`
	Tier       string          `json:"serviceTier"`
	Mode       string          `json:"mode"`
	Data       json.RawMessage `json:"data"`
	Tools      []string        `json:"activeToolNames"`
	Rules      []string        `json:"injectedRules"`
}

// SettingsInForce returns the settings at the end of a path, root first: the last entry of each kind counts. By the
// rules of omp a model_change of the default role stays in force whatever model answers afterwards; by all others the
// later of model_change and answer counts. Where no entry names a model, that of an assistant's message counts.
func SettingsInForce(path []transcript.Entry, p transcript.Profile) Settings {
	s := Settings{Models: map[string]string{}, ThinkingLevel: "off", Mode: "none"}
	explicit := false
	for _, e := range path {
		if title, ok := e.Title(); ok {
			s.Title = title
			continue
		}
		if m, ok := e.Message(); ok {
			if name := spoken(m); name != "" && !(explicit && p == transcript.OMP) && p != transcript.Operator {
				s.Models["default"] = name
			}
			continue
		}
		if !slices.Contains(settingKinds, e.Type) {
			continue
		}
		var c settingsChange
		if err := e.Decode(&c); err != nil {
			continue // a field of another type: the entry is ignored
		}
		explicit = s.take(e.Type, c) || explicit
	}
	return s
}

// settingKinds are the types of settings entries.
var settingKinds = []string{
	"model_change", "thinking_level_change", "service_tier_change", "mode_change", "active_tools_change",
	"ttsr_injection",
}

// take applies one entry, and reports whether it named the default model.
func (s *Settings) take(typ string, c settingsChange) bool {
	switch typ {
	case "model_change":
		name := c.Model
		if c.ModelID != "" {
			name = join(c.Provider, c.ModelID)
		}
		role := c.Role
		if role == "" {
			role = "default"
		}
		if name != "" {
			s.Models[role] = name
			return role == "default"
		}
	case "thinking_level_change":
		if s.ThinkingLevel = c.Thinking; c.Thinking == "" {
			s.ThinkingLevel = "off"
		}
		s.Configured = c.Configured
	case "service_tier_change":
		s.ServiceTier = c.Tier
	case "mode_change":
		if s.Mode, s.ModeData = c.Mode, c.Data; c.Mode == "" {
			s.Mode = "none"
		}
	case "active_tools_change":
		s.Tools = c.Tools
	case "ttsr_injection":
		for _, r := range c.Rules {
			if !slices.Contains(s.InjectedRules, r) {
				s.InjectedRules = append(s.InjectedRules, r)
			}
		}
	}
	return false
}

// spoken returns the model of an assistant's message.
func spoken(m transcript.Message) string {
	if m.Role != "assistant" {
		return ""
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m.Raw, &fields); err != nil {
		return ""
	}
	return join(text(fields["provider"]), text(fields["model"]))
}

func text(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}

func join(provider, model string) string {
	if provider == "" || model == "" {
		return model
	}
	return provider + "/" + model
}
