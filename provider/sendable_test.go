package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/provider"
)

// user is a message of the user with these blocks.
func userOf(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func imageOf(mime, data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, mime, data)
}

// Half a surrogate pair is U+FFFD in a request, in each text, key and argument, and a loss; everything else keeps its
// bytes.
func TestHalvesOfPairs(t *testing.T) {
	messages := []string{
		`{"role":"user","content":"a \ud83d b \ud83d\ude42 \\ud83d"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"k\udc00":"\ud83d"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\uD83Dx"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function",` +
			`"function":{"name":"f","arguments":"{\"s\":\"\\ud83d \\ud83d\\ude42\"}"}}]}`,
		`{"role":"tool","tool_call_id":"b","content":"ok"}`,
	}
	for _, api := range provider.APIs() {
		got := shown(t, api, nil, messages...)
		for _, i := range []int{0, 1, 2, 3} {
			if !strings.Contains(got, fmt.Sprintf("lost %d e%d text", i, i)) {
				t.Errorf("%s: nothing says what message %d lost:\n%s", api, i, got)
			}
		}
		if strings.Count(got, " text") != 4 ||
			!strings.Contains(got, `🙂`) && !strings.Contains(got, `\ud83d\ude42`) {
			t.Errorf("%s: other characters are gone:\n%s", api, got)
		}
	}
	if got := shown(t, provider.Anthropic, nil, messages[0]); !strings.HasPrefix(got, `{"role":"user",`+
		`"content":"a \ufffd b \ud83d\ude42 \\ud83d"}`) {
		t.Error(got)
	}
}

// An image that the API refuses is named in words in its place, with the reason, and is a loss.
func TestImagesThatAreRefused(t *testing.T) {
	testutil.SkipLong(t)
	every := provider.APIs()
	anthropic, gemini := every[:1], every[3:]
	both := []provider.API{provider.Anthropic, provider.Gemini}
	noImage := strings.Repeat("AAAA", 20)
	over := onePixel + strings.Repeat("AAAA", 5<<18)
	gif := "R0lGODlhAQABAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="
	for name, tt := range map[string]struct {
		image string
		apis  []provider.API // those that refuse it
		want  string
	}{
		"not base64":   {imageOf("image/png", "!!!!"), every, "not base64"},
		"no image":     {imageOf("image/png", noImage), every, "not a PNG, JPEG, GIF or WebP image"},
		"no bytes":     {imageOf("image/png", ""), every, "no bytes"},
		"another type": {imageOf("image/jpeg", onePixel), every, `it is image/png, and declared as`},
		"too wide":     {imageOf("image/png", pngOf(12000, 9000)), anthropic, "12,000 x 9,000 pixels, at most"},
		"no real size": {imageOf("image/png", pngOf(0, 9000)), every, "not a PNG, JPEG, GIF or WebP image"},
		"over 5 MB":    {imageOf("image/png", over), anthropic, "5,242,924 bytes in base64, at most"},
		"openai's":     {`{"type":"input_image","image_url":"data:image/png;base64,iVBORw0"}`, every, "not base64"},
		"pi's":         {`{"type":"image","data":"!","mimeType":"image/png"}`, every, "not base64"},
		"a GIF":        {imageOf("image/gif", gif), gemini, "image/gif, which the API does not take"},
		"an address": {
			`{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`, gemini, "at an address",
		},
		"an open address": {
			`{"type":"image_url","image_url":{"url":"http://x.example/a.png"}}`, both, "at an address",
		},
	} {
		call := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[` + tt.image + `]}]}`
		for _, api := range every {
			refused := slices.Contains(tt.apis, api)
			for at, list := range [][]string{{userOf(`{"type":"text","text":"see"}`, tt.image)}, {hi, call, result}} {
				got := shown(t, api, nil, list...)
				lost := strings.HasSuffix(got, fmt.Sprintf("lost %d e%d image", len(list)-1, len(list)-1))
				if words := strings.Contains(got, "[image left out: "+tt.want); words != refused || lost != refused {
					t.Errorf("%s, %s, %d: %.600s", name, api, at, got)
				}
			}
		}
	}
}

// Of images that fit alone, those are left out that do not fit together: the oldest over the number that a request may
// hold, and those that are too large for a request of many.
func TestImagesThatDoNotFitTogether(t *testing.T) {
	testutil.SkipLong(t)
	of := func(n int, data string) (list []string) {
		for range n {
			list = append(list, userOf(imageOf("image/png", data)))
		}
		return list
	}
	large := onePixel + strings.Repeat("AAAA", 5<<18-len(onePixel)/4)
	for name, tt := range map[string]struct {
		messages []string
		lost     []int
	}{
		"twenty that are large":   {of(20, pngOf(8000, 2)), nil},
		"one more":                {of(21, pngOf(8000, 2)), []int{0}},
		"of many, one is large":   {append(of(21, onePixel), of(1, pngOf(3000, 2))...), []int{21}},
		"a hundred and two":       {of(102, onePixel), []int{0, 1}},
		"over 32 MB in a request": {of(7, large), []int{0}},
	} {
		r, err := provider.Convert(t.Context(), contextOf(tt.messages...), provider.Anthropic, nil)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := check(r); wrong != "" {
			t.Errorf("%s: %.300s", name, wrong)
		}
		var lost []int
		for _, l := range r.Lost {
			lost = append(lost, l.Message)
		}
		if fmt.Sprint(lost) != fmt.Sprint(tt.lost) {
			t.Errorf("%s: lost %v, want %v: %v", name, lost, tt.lost, r.Lost)
		}
	}
}

// Thinking is sent with a signature that can be one, to the provider and the model that signed it.
func TestSignatures(t *testing.T) {
	const signed, pis = `"signature":"Uw=="`, `"thinkingSignature":"Uw=="`
	const claude = `"model":"claude-opus-4-8"`
	const item = `"thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":`
	for name, tt := range map[string]struct {
		api    provider.API
		fields string // of the message
		block  string
		vendor string // that is asked
		sent   bool
	}{
		"its own":          {provider.Anthropic, claude, signed, "", true},
		"empty":            {provider.Anthropic, claude, `"signature":""`, "", false},
		"not base64":       {provider.Anthropic, claude, `"signature":"no sig"`, "", false},
		"of another model": {provider.Anthropic, `"model":"glm-4.7"`, signed, "", false},
		"of another provider": {
			provider.Anthropic, `"api":"anthropic-messages","provider":"zai","model":"m"`, pis, "", false,
		},
		"of the provider that is asked": {
			provider.Anthropic, `"api":"anthropic-messages","provider":"zai","model":"m"`, pis, "zai", true,
		},
		"gemini":             {provider.Gemini, `"api":"google-generative-ai"`, pis, "", true},
		"gemini, not base64": {provider.Gemini, `"api":"google-generative-ai"`, `"thinkingSignature":"{}"`, "", false},
		"an item":            {provider.OpenAIResponses, `"api":"openai-responses"`, item + `\"gAAA\"}"`, "", true},
		"an empty item":      {provider.OpenAIResponses, `"api":"openai-responses"`, item + `\"\"}"`, "", false},
		"a stored item":      {provider.OpenAIResponses, `"api":"openai-responses"`, item + `null}"`, "", false},
		"a text as content":  {provider.OpenAIResponses, `"api":"openai-responses"`, item + `\"I see\"}"`, "", false},
	} {
		message := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm",` + tt.block +
			`},{"type":"text","text":"so"}],` + tt.fields + `}`
		got := shown(t, tt.api, &provider.Options{Provider: tt.vendor}, hi, message)
		if lost := strings.HasSuffix(got, "lost 1 e1 thinking"); lost == tt.sent {
			t.Errorf("%s: %s", name, got)
		}
	}
}
