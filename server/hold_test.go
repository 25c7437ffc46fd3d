package server_test

import (
	"strings"
	"testing"
)

// Only the right hold sets and ends a hold. While a session is held no right deletes it.
func TestHoldOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url, withTokens(parse(t, line("writer", "-", "read,write")+line("lawyer", "-", "read,hold")+
			line("all", "-", "admin"))))
		const at = "/v1/sessions/s"
		s.do("PUT", at, "{}", auth("writer"), "If-None-Match: *").want(t, 201)
		s.do("PUT", at+"/hold", `{"reason":"case 7"}`, auth("writer")).want(t, 403)
		s.do("PUT", at+"/hold", `{}`, auth("lawyer")).want(t, 400)
		s.do("PUT", at+"/hold", `{"reason":"case 7"}`, auth("lawyer")).want(t, 200)
		if doc := s.do("GET", at, "", auth("writer")); !strings.Contains(string(doc.body), `"coppice.hold":"case 7"`) {
			t.Errorf("%s", doc.body)
		}
		s.do("DELETE", at+"/hold", "", auth("writer")).want(t, 403)
		for _, meta := range []string{`null`, `""`, `"mine"`} {
			s.do("PATCH", at, `{"meta":{"coppice.hold":`+meta+`}}`, auth("all")).want(t, 400)
		}
		s.do("POST", at+"/commits", hello("x"), auth("writer"), "If-Match: *").want(t, 200)
		forged := `{"entries":[{"type":"custom","customType":"coppice.meta","data":{"coppice.hold":null}}]}`
		s.do("POST", at+"/commits", forged, auth("writer"), "If-Match: *")
		for _, token := range []string{"writer", "all"} {
			doc := s.do("DELETE", at, "", auth(token), "If-Match: *").want(t, 409)
			if doc["code"] != "held" {
				t.Errorf("%v", doc)
			}
			s.do("DELETE", "/openai/v1/conversations/s", "", auth(token)).want(t, 409)
		}
		s.do("PUT", "/v1/sessions/t", `{"meta":{"coppice.hold":"x"}}`, auth("all"), "If-None-Match: *").want(t, 400)
		s.do("DELETE", at+"/hold", "", auth("lawyer")).want(t, 200)
		s.do("DELETE", at, "", auth("writer"), "If-Match: *").want(t, 200)
	})
}
