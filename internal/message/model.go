package message

import "github.com/coppice-go/coppice/internal/rawjson"

// Unknown replaces an unknown model or provider in messages of pi and related programs.
const Unknown = "unknown"

// models are the fields that name a model.
var models = [...]string{"model", "modelVersion", "model_version", "modelId"}

// Models returns the names of the fields that Model reads.
func Models() []string { return models[:] }

// Model returns the model that a message names, as a JSON string; nil = none.
func Model(message []byte) []byte {
	return First(message, models[:]...)
}

// Name returns the model of a message or of another object with a usage: "provider/id", or the id if there is no
// provider; "" = unknown.
func Name(message []byte) string {
	model, provider := rawjson.Text(Model(message)), rawjson.Text(rawjson.Field(message, "provider"))
	switch {
	case model == Unknown:
		return ""
	case model == "" || provider == "" || provider == Unknown:
		return model
	}
	return provider + "/" + model
}

// ByModel reports whether a message is an answer of a model: by its role, or as an item of OpenAI's responses without a
// role.
func ByModel(role string, message []byte) bool {
	switch role {
	case "assistant", "model", "ai":
		return true
	case "":
		return IsItem(message)
	}
	return false
}

// IsItem reports whether a message is an item of OpenAI's responses that a model produced and that is one block: a
// call, or thinking.
func IsItem(message []byte) bool {
	switch rawjson.Text(rawjson.Field(message, "type")) {
	case "function_call", "custom_tool_call":
		return true
	case "reasoning":
		return rawjson.Field(message, "role") == nil
	}
	return false
}
