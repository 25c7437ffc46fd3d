package integration

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// The policies and rules of docs/s3.md can be pasted unchanged.
func TestDocumentedPolicies(t *testing.T) {
	text := must(os.ReadFile("../docs/s3.md"))(t)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Errorf("%d blocks of JSON, want 3", len(blocks))
	}
	for i, block := range blocks {
		var v struct{ Statement, Rules []map[string]any }
		if err := json.Unmarshal(block[1], &v); err != nil || len(v.Statement)+len(v.Rules) != 3 {
			t.Errorf("block %d: %v, %d statements, %d rules", i, err, len(v.Statement), len(v.Rules))
		}
	}
}
