package browser

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/server"
)

// Without the right to read, the page asks for a token and shows why: after a link that was used, a wrong token, and a
// token of another tenant.
func TestLogin(t *testing.T) {
	t.Parallel()
	tokens, err := server.ParseTokens(strings.NewReader(fmt.Sprintf("%x - read\n%x acme read\n",
		sha256.Sum256([]byte("sesame")), sha256.Sum256([]byte("another tenant's")))))
	ok(t, err)
	s := withBundled(t, func(o *server.Options) { o.Tokens = tokens; o.Authorize = tokens.Authorize })
	p := newTab(t, s, wide)
	p.allow("status of 401")
	p.navigate("/login?code=used")
	p.click("button")
	p.see(".login [role=alert]|was used before")
	p.write(".login input", "open")
	p.press("Enter")
	p.see(".login [role=alert]|did not take the token")
	p.navigate("/login?code=" + tokens.Link())
	p.click("button")
	p.see(".sessions a|tideline")
	p.navigate("/login?code=used")
	p.click("button")
	p.see(".sessions a|tideline") // the cookie is there already

	q := newTab(t, s, wide)
	q.allow("status of 40[13]")
	q.navigate("/s/" + bundled)
	q.see(".login")
	q.write(".login input", "another tenant's")
	q.press("Enter")
	q.see(".login [role=alert]|does not allow")
	q.miss(".top")
	q.write(".login input", "sesame")
	q.press("Enter")
	q.see(".talk article|" + newest)
	q.see("header|connected")
}
