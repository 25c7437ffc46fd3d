package secrets_test

import (
	"fmt"
	"strconv"
	"strings"
)

// The corpus is made at run time: no credential, not even a false one, is in the repository.

// sample is a text, and the credential in it; "" = there is none.
type sample struct{ kind, text, secret string }

// dice is a stream of numbers that is the same everywhere (SplitMix64).
type dice uint64

func (d *dice) below(n int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n)) //nolint:gosec // below n
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// alphabets of the parts {X12} of a form: the letter names the alphabet, the number is the length.
var alphabets = map[byte]string{
	'a': lower, 'U': upper, 'd': digits, 'h': digits + "abcdef", 'l': lower + digits, 'u': upper + digits,
	'A': lower + upper + digits, 'w': lower + upper + digits + "_-", 'b': lower + upper + digits + "+/",
	'3': upper + "234567", 'm': "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}

// fill makes a text of a form. Other braces than those of parts stay.
func (d *dice) fill(form string) string {
	var out strings.Builder
	for i := 0; i < len(form); i++ {
		part, _, closed := strings.Cut(form[i:], "}")
		if form[i] != '{' || !closed || len(part) < 3 || alphabets[part[1]] == "" {
			out.WriteByte(form[i])
			continue
		}
		n, err := strconv.Atoi(part[2:])
		if err != nil {
			out.WriteByte(form[i])
			continue
		}
		set := alphabets[part[1]]
		for range n {
			out.WriteByte(set[d.below(len(set))])
		}
		i += len(part)
	}
	return out.String()
}

const uuidForm = "{h8}-{h4}-4{h3}-a{h3}-{h12}"

// kinds are the true credentials: a form, and the places in which it occurs, "" = those of any token. In a place, § is
// the credential.
var kinds = []struct {
	name, form string
	places     []string
}{
	{"github-pat", "ghp_{A36}", nil},
	{"github-oauth", "gho_{A36}", nil},
	{"github-app", "ghs_{A36}", nil},
	{"github-fine-grained", "github_pat_{A22}_{A59}", nil},
	{"gitlab-pat", "glpat-{w20}", nil},
	{"gitlab-runner", "glrt-{w20}", nil},
	{"aws-access-key-id", "AKIA{316}", nil},
	{"aws-secret-access-key", "{A20}/{A19}", named("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key")},
	{"anthropic", "sk-ant-api03-{w93}AA", nil},
	{"openai", "sk-proj-{w58}T3Blbk" + "FJ{w58}", nil},
	{"openai-legacy", "sk-{A20}T3Blbk" + "FJ{A20}", nil},
	{"google-api", "AIza{w35}", nil},
	{
		"google-service-account",
		"-----BEGIN PRIVATE" + " KEY-----\\n{b64}\\n{b64}\\n{b64}\\n-----END PRIVATE" + " KEY-----\\n",
		[]string{`{"type": "service_account", "private_key": "§", "client_id": "1"}`},
	},
	{"huggingface", "hf_{a34}", nil},
	{"slack-bot", "xoxb-{d12}-{d12}-{A24}", nil},
	{"slack-user", "xoxp-{d12}-{d12}-{d12}-{l32}", nil},
	{"slack-app", "xapp-1-{u11}-{d13}-{h64}", nil},
	{"slack-webhook", "https://hooks.slack.com/services/T{u9}/B{u9}/{A24}", nil},
	{"stripe-live", "sk_live_{A24}", nil},
	{"stripe-restricted", "rk_live_{A24}", nil},
	{"stripe-test", "sk_test_{A24}", nil},
	{"npm", "npm_{A36}", nil},
	{"pypi", "pypi-AgEIcHlwaS5vcmc{w70}", nil},
	{"rubygems", "rubygems_{h48}", nil},
	{"sendgrid", "SG.{w22}.{w43}", nil},
	{"twilio", "SK{h32}", nil},
	{"digitalocean", "dop_v1_{h64}", nil},
	{"databricks", "dapi{h32}", nil},
	{"shopify", "shpat_{h32}", nil},
	{"linear", "lin_api_{A40}", nil},
	{"notion", "ntn_{d11}{A35}", nil},
	{"postman", "PMAK-{h24}-{h34}", nil},
	{"vault", "hvs.{w95}", nil},
	{"terraform", "{A14}.atlasv1.{w64}", nil},
	{"doppler", "dp.pt.{A43}", nil},
	{"fly", "fo1_{w43}", nil},
	{"pulumi", "pul-{h40}", nil},
	{"grafana", "glsa_{A32}_{h8}", nil},
	{"sentry", "sntryu_{h64}", nil},
	{"planetscale", "pscale_tkn_{w43}", nil},
	{"perplexity", "pplx-{A48}", nil},
	{"age", "AGE-SECRET-KEY-1{m58}", nil}, // its letters are in upper case
	{"1password", "A3-{u6}-{u11}-{u5}-{u5}-{u5}", nil},
	{"artifactory", "AKCp{A69}", nil},
	{"azure-client-secret", "{A3}8Q~{w34}", nil},
	{"easypost", "EZAK{A54}", nil},
	{"shippo", "shippo_live_{h40}", nil},
	{"prefect", "pnu_{A36}", nil},
	{"readme", "rdme_{l70}", nil},
	{"jwt", "eyJhbGciOiJIUzI1NiJ9.eyJ{A60}.{w43}", nil},
	{
		"ssh-key",
		"-----BEGIN OPENSSH PRIVATE" + " KEY-----\n{b70}\n{b70}\n{b70}\n-----END OPENSSH PRIVATE" + " KEY-----",
		[]string{"$ cat ~/.ssh/id_ed25519\n§\n", "key: |\n§\n", "<file>§</file>"},
	},
	{
		"rsa-key", "-----BEGIN RSA PRIVATE" + " KEY-----\n{b64}\n{b64}\n{b64}\n-----END RSA PRIVATE" + " KEY-----",
		[]string{"§", "```\n§\n```", "-§"},
	},
	{
		"pgp-key",
		"-----BEGIN PGP PRIVATE" + " KEY BLOCK-----\n\n{b64}\n{b64}\n-----END PGP PRIVATE" + " KEY BLOCK-----",
		[]string{"§", "gpg --export-secret-keys\n§\n"},
	},
	{"datadog", "{h32}{h8}", named("DATADOG_API_KEY", "datadog_key")},
	{"cloudflare", "{w40}", named("CLOUDFLARE_API_TOKEN", "cloudflare_token")},
	{"heroku", uuidForm, named("HEROKU_API_KEY", "heroku_api_key")},
	{"mailgun", "key-{h32}", named("MAILGUN_API_KEY", "mailgun_key")},
	{"new-relic", "NRAK-{u27}", named("NEW_RELIC_API_KEY", "new_relic_key")},
	{"discord-secret", "{w32}", named("DISCORD_CLIENT_SECRET", "discord_secret")},
	{"telegram-bot", "{d10}:A{w34}", named("TELEGRAM_BOT_TOKEN", "telegram_token")},
	{"api-key", "{A32}", named("API_KEY", "api_key")},
	{"client-secret", "{w40}", named("CLIENT_SECRET", "clientSecret")},
	{"access-token", "{A64}", named("ACCESS_TOKEN", "accessToken")},
	{"session-secret", "{h64}", named("SESSION_SECRET", "session_secret")},
	{"azure-storage", "{b86}==", []string{
		"AccountName=store;AccountKey=§;EndpointSuffix=core.windows.net", `{"AccountKey": "§"}`,
	}},
	{"password-strong", "{A9}-{A9}", named("DB_PASSWORD", "password")},
	{"password-symbols", "{A5}!{A4}#{A4}", named("DB_PASSWORD", "password")}, // a miss: the rule has no such characters
	{"password-words", "correct-horse-{a7}", named("DB_PASSWORD", "password")},
	{"url-password", "{A14}", []string{
		"postgres://app:§@db.internal:5432/app", `DATABASE_URL="mysql://root:§@10.0.0.5/x"`,
		"https://ci:§@git.internal/x.git", `{"redis": "redis://:§@cache:6379/0"}`, "amqp://svc:§@mq:5672",
	}},
	{"bearer", "{w48}", []string{
		"Authorization: Bearer §", `curl -H "Authorization: Bearer §" https://api.internal/v1`,
		`{"headers": {"Authorization": "Bearer §"}}`, `headers={'Authorization': 'Bearer §'}`,
		`"{\"Authorization\": \"Bearer §\"}"`,
	}},
	{"basic", "{b35}=", []string{
		"> Authorization: Basic §", `curl -H 'Authorization: Basic §' https://registry.internal/`, `"auth": "§"`,
	}},
	{"curl-user", "bot:{A18}", []string{"curl -u \"§\" https://ci.internal/job", "curl --user '§' https://x.internal"}},
	{"netrc", "{A16}", []string{"machine git.internal login ci password §"}}, // a miss: no sign between them
	{"query", "{h32}", []string{
		"GET /v1/items?api_key=§&page=2", "https://maps.internal/js?key=§", "wss://x.internal/?access_token=§",
	}},
	{"kubernetes", "{b40}", []string{
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  value: §\n",
	}},
	{"npmrc", "{h36}", []string{"//registry.internal/:_authToken=§"}},
	{"base64-twice", "{A40}", []string{"echo {b54} | base64 -d"}}, // a miss: what is encoded is not decoded
}

// places of any token.
var places = []string{
	"export TOKEN=§\n", "API_TOKEN=§", `{"token":"§"}`, `"args":"{\"token\":\"§\"}"`, "key: §\n", "token = '§'",
	"const client = new Client(\"§\");", "I put § into the file.", "use `§`, then run it", "(see §)",
	"Error: 401 for §\n    at main.go:12", "+  secret: §", "| name | § |", "--token §", "https://x.internal/?t=§&n=1",
	"X-Api-Key: §\r\nHost: x", "§",
}

// named are places of a credential that only its name shows.
func named(env, member string) []string {
	return []string{
		"export " + env + "=§\n", env + "=\"§\"", `{"` + member + `": "§"}`, member + ": §\n", member + " = '§'",
		`"{\"` + member + `\":\"§\"}"`,
	}
}

// trueSamples are the credentials of the corpus.
func trueSamples() (list []sample) {
	d := dice(39)
	turn := 0
	for _, k := range kinds {
		at := k.places
		if at == nil {
			for range 4 { // each in the next four of all places
				at = append(at, places[turn%len(places)])
				turn++
			}
		}
		for _, place := range at {
			secret := d.fill(k.form)
			if k.name == "age" {
				secret = strings.ToUpper(secret)
			}
			list = append(list, sample{k.name, strings.Replace(d.fill(place), "§", secret, 1), secret})
		}
	}
	return list
}

// harmless are texts without credentials, each a form, and how often the corpus has it.
var harmless = []struct {
	kind  string
	times int
	forms []string
}{
	{"hash", 300, []string{
		"commit {h40}", "{h64}  release.tar.gz", "index {h7}..{h7} 100644", "sha256:{h64}", "md5 = {h32}",
		"etag: \"{h32}\"", "Merge {h7} into {h7}", "blob {h40}\tsrc/key.go", "HEAD is now at {h7} fix token",
		"digest: sha256:{h64}", "checksum = \"{h64}\"", "{\"sha\":\"{h40}\",\"key\":\"blob\"}",
	}},
	{"uuid", 300, []string{
		"session " + uuidForm, "{\"id\":\"" + uuidForm + "\"}", "request_id=" + uuidForm, "trace-id: " + uuidForm,
		"/v1/items/" + uuidForm + "/rows", "{\"parentId\":\"" + uuidForm + "\",\"type\":\"message\"}",
		"X-Request-Id: " + uuidForm, "toolu_{A24}", "call_{A24}", "msg_{A24}", "chatcmpl-{A29}",
	}},
	{"image", 120, []string{
		"data:image/png;base64,iVBORw0KGgo{b900}=", "{\"type\":\"image\",\"data\":\"/9j/{b1500}\"}",
		"{\"signature\":\"{b700}==\"}", "{\"encrypted_content\":\"gAAAAA{w900}\"}",
		"url(data:font/woff2;base64,d09GMgAB{b600})",
	}},
	{"lock", 280, []string{
		"github.com/x/auth v1.2.3 h1:{b43}=", "github.com/x/token v0.4.0/go.mod h1:{b43}=",
		"\"integrity\": \"sha512-{b86}==\"", "resolved \"https://registry.internal/key/-/key-1.0.0.tgz#{h40}\"",
		"{file = \"x-1.0-py3-none-any.whl\", hash = \"sha256:{h64}\"}", "checksum = \"{h64}\"",
		"    --hash=sha256:{h64}", "name = \"secret-service\"\nversion = \"3.0.1\"\nchecksum = \"{h64}\"",
	}},
	{"placeholder", 300, []string{
		"API_KEY=your-api-key-here", "export TOKEN=${GITHUB_TOKEN}", "password: <password>",
		"token: xxxxxxxxxxxxxxxxxxxx",
		"SECRET_KEY=changeme", "api_key = \"YOUR_API_KEY\"", "Authorization: Bearer $TOKEN",
		"Authorization: Bearer <your token>", "password=********", "key: {{ .Values.apiKey }}",
		"token: ${{ secrets.GITHUB_TOKEN }}", "postgres://user:password@localhost:5432/db",
		"postgres://${DB_USER}:${DB_PASSWORD}@${DB_HOST}/app", "redis://localhost:6379/{d1}", "sk-...", "ghp_xxxx",
		"AKIAIOSFODNN7EXAMPLE", "curl -H \"Authorization: Bearer $API_TOKEN\" https://x.internal/{l4}",
		"OPENAI_API_KEY=sk-your-key", "PASSWORD=", "https://user:pass@example.com/{l3}",
	}},
	{"code", 400, []string{
		"apiKey := os.Getenv(\"API_KEY_{U3}\")", "token, err := s.tokens.Issue(ctx, {l4}.Rights)",
		"if err := checkPassword(user.Password, form.Password); err != nil {", "const key = `${prefix}:${name}`;",
		"<Item key={item.id} token={tokenOf(item)} />", "self.access_token = response.json()[\"access_token\"]",
		"func (k *keyring) secretFor(name string) (secret []byte, err error) {",
		"type TokenKind = \"access\" | \"refresh\";",
		"authorize(user, { scope: 'read:{a6}' })", "case tokenIdentifier: return p.parseIdentifier()",
		"SELECT key, value FROM settings WHERE key = '{a5}.{a7}'", "password_hash = bcrypt.hash(password, rounds=12)",
		"var keyboardShortcut = \"ctrl+shift+{a1}\"", "import { useAuth } from '@/hooks/use-auth-{a4}'",
		"map[string]string{\"key\": \"{a9}\", \"access\": \"read-only\"}",
		"cacheKey = fmt.Sprintf(\"%s/%s/%d\", a, b, {d2})",
		"assert.Equal(t, \"token expired at {d4}\", err.Error())", "primary_key: true, foreign_key: {a6}_id",
		"i18n.t('settings.password.{a8}.description')", "aria-describedby=\"password-help-{d3}\"",
		"public static final String TOKEN_ENDPOINT = \"/oauth2/{a5}/token\";",
		"author = \"Jane Doe <jane@x.internal>\"",
	}},
	{"fixture", 200, []string{
		"token := \"test-token-{d6}\"", "secret: \"s3cr3t-for-tests\"", "apiKey: 'fake-api-key-{d10}'",
		"access_token=dummy-token-{l12}", "const SECRET = 'not-a-real-secret-{a6}'", "key: \"user:{d8}:profile\"",
		"API_KEY=test_{A16}", "X-Auth-Token: abc123abc123", "jwt_secret: 'unit-test-only-{a5}'",
		"signingKey = \"0123456789abcdef\"",
	}},
	{"prose", 200, []string{
		"The key is to keep the token bucket small: {a6} {a7}.", "Which password policy? At least {d2} characters.",
		"It reads the secret from the environment, see README ({a5}).", "access: denied, reason: {a9}",
		"usage: input tokens: {d5}, output tokens: {d4}", "tokens={d6}, cached={d5}", "key={a4}",
		"Token count => {d7}",
		"API: /v1/{a8}/{a6}", "## Authentication\n\nSend the header `X-Api-Key` with {a5}.",
	}},
	{"minified", 100, []string{
		"!function(e,t){var n=t.key,r=\"{a3}\";e.token=function(){return n[{d2}]}}({a2},{a1});var key={a1}.{a2}({d3});",
		".{a2}{color:#{h6}}.{a2}:hover{background:url(/a/{h8}.svg)}", "e.exports={key:\"{a2}\",auth:!0,token:{d3}};",
		"//# sourceMappingURL=main.{h20}.js.map", "<script src=\"/assets/auth.{h8}.js\" nonce></script>",
	}},
	{"public", 100, []string{
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} jane@host", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b300} x",
		"-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n{b64}\n{b64}\n-----END PUBLIC KEY-----",
		"SHA256:{b43} jane@host (ED25519)", "pk.publicKey: {d4} bits, fingerprint {h4}:{h4}:{h4}",
	}},
	{"log", 200, []string{
		"2026-11-01T12:00:{d2}Z INFO auth: user {l8} logged in from 10.0.{d1}.{d2}", "nextPageToken: {A40}",
		"cache-key: linux-go-{h64}", "idempotency-key: " + uuidForm, "GET /healthz 200 {d2}ms key={l6}",
		"Set-Cookie: theme=dark; Path=/; Max-Age={d5}", "ok  \tgithub.com/x/internal/secret\t0.{d3}s",
		"--- PASS: TestTokenExpiry/{a7} (0.{d2}s)", "pod/auth-{l10}-{l5}   1/1   Running   0   {d1}h",
		"{\"level\":\"info\",\"key\":\"{a8}\",\"msg\":\"token refreshed\"}",
	}},
}

// falseSamples are the texts of the corpus without credentials.
func falseSamples() (list []sample) {
	d := dice(93)
	for _, h := range harmless {
		for i := range h.times {
			list = append(list, sample{kind: h.kind, text: d.fill(h.forms[i%len(h.forms)])})
		}
	}
	return list
}

func (s sample) String() string { return fmt.Sprintf("%s: %.200q", s.kind, s.text) }
