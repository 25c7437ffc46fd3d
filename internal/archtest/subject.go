package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSubject is the maximum width of the first line of a commit message, in columns.
const maxSubject = 72

var (
	// subjectForm is "area: words", where an area is a package, a folder or a topic, or several with commas.
	subjectForm = regexp.MustCompile(
		`^[a-z0-9][\w./*+-]*(?:(?:, | and | )[a-z0-9][\w./*+-]*){0,3}: ([a-z]+)(?:[ -].*[^.])?$`)
	// notVerbs are first words of sentences that are not imperatives.
	notVerbs = strings.Fields("a an the this that these those it what who when where how no some all one every each")
	// plainVerbs are imperatives that look like another form of a verb.
	plainVerbs = strings.Fields("alias bias bring embed exceed feed need proceed seed shed speed string succeed")
)

// checkSubject returns the fault of a commit subject, "" if there is none.
func checkSubject(subject string) string {
	if n := utf8.RuneCountInString(subject); n > maxSubject {
		return fmt.Sprintf("%d columns, at most %d", n, maxSubject)
	}
	m := subjectForm.FindStringSubmatch(subject)
	if m == nil {
		return "want `area: imperative`, without a full stop"
	}
	verb := m[1]
	if slices.Contains(plainVerbs, verb) {
		return ""
	}
	third := strings.HasSuffix(verb, "s") && !strings.HasSuffix(verb, "ss") && !strings.HasSuffix(verb, "us")
	if slices.Contains(notVerbs, verb) || third || strings.HasSuffix(verb, "ed") || strings.HasSuffix(verb, "ing") {
		return fmt.Sprintf("%q is no imperative", verb)
	}
	return ""
}
