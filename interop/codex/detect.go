package codex

import "github.com/coppice-go/coppice/interop/codex/internal/rollout"

// Detect tells by the first bytes of a file, compressed or not, whether it is one of Codex's. The last line may
// be torn.
func Detect(head []byte) bool { return rollout.Detect(head) }
