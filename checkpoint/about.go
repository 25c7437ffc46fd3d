package checkpoint

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// HeaderRelation returns Summary.Relation and Summary.Meta from a header line of a session. They are in the object
// "coppice":{"relation":"..","meta":{..}} of the header; the key MetaHold is removed from meta. A header without that
// object, but with a string field "agent", belongs to an agent of another program: the relation is "agent". For any
// other header both results are empty.
func HeaderRelation(header []byte) (relation string, meta map[string]string) {
	if own := rawjson.Field(header, "coppice"); own != nil {
		var fields struct {
			Relation string
			Meta     map[string]string
		}
		if err := json.Unmarshal(own, &fields); err == nil {
			delete(fields.Meta, MetaHold)
			return fields.Relation, fields.Meta
		}
	}
	if bytes.Contains(header, []byte(`"agent"`)) && rawjson.IsString(rawjson.Field(header, "agent")) {
		return "agent", nil
	}
	return "", nil
}
