package transcript

import "encoding/json"

// Item is one element of an explicit context: an entry by id, or an inline message, one provider's JSON
// object. Exactly one of the two is set.
type Item struct {
	Entry   string          `json:"entry,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
}
