package message

import "github.com/coppice-go/coppice/internal/rawjson"

// Unknown replaces a model or its provider in the messages of pi's family where no one said which.
const Unknown = "unknown"

// models are the fields that name a model.
var models = [...]string{"model", "modelVersion", "model_version", "modelId"}

// Models are the names of the fields that Model looks at.
func Models() []string { return models[:] }

// Model returns the model that a message names, as a JSON string; nil = it names none.
func Model(message []byte) []byte {
	return First(message, models[:]...)
}

// Name returns the model of a message or of another object that has a usage: "provider/id", or the id where no provider
// is named; "" = the model is not said.
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

// ByModel reports a message that is an answer of a model: by its role, or as an item of OpenAI's responses that has
// none.
func ByModel(role string, message []byte) bool {
	switch role {
	case "assistant", "model", "ai":
		return true
	case "":
		return IsItem(message)
	}
	return false
}

// IsItem reports an item of OpenAI's responses that a model gave and that is one part: a call, or what it thought.
func IsItem(message []byte) bool {
	switch rawjson.Text(rawjson.Field(message, "type")) {
	case "function_call", "custom_tool_call":
		return true
	case "reasoning":
		return rawjson.Field(message, "role") == nil
	}
	return false
}
