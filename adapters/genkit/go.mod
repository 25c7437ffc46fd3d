module github.com/coppice-go/coppice/adapters/genkit

go 1.26.0

require github.com/coppice-go/coppice v0.0.0

require (
	github.com/evanphx/json-patch/v5 v5.9.11 // indirect
	github.com/firebase/genkit/go v1.4.0
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/tidwall/gjson v1.18.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	github.com/wI2L/jsondiff v0.7.1 // indirect
)

replace github.com/coppice-go/coppice => ../..
