package checkpoint

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// About returns Summary.Relation and Meta of a session's header line: "coppice":{"relation":"..","meta":{..}}. It has
// no MetaHold. If the header has the text "agent" the session was created by an agent of another program, and its
// relation is "agent".
func About(header []byte) (relation string, meta map[string]string) {
	if own := rawjson.Field(header, "coppice"); own != nil {
		var says struct {
			Relation string
			Meta     map[string]string
		}
		if err := json.Unmarshal(own, &says); err == nil {
			delete(says.Meta, MetaHold)
			return says.Relation, says.Meta
		}
	}
	if bytes.Contains(header, []byte(`"agent"`)) && rawjson.IsString(rawjson.Field(header, "agent")) {
		return "agent", nil
	}
	return "", nil
}
