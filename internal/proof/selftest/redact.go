package selftest

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// shortestName is the length from which on a name is replaced wherever it is a word of its own.
const shortestName = 2

// redactor replaces names, addresses and secrets in texts.
type redactor struct {
	names   []*regexp.Regexp
	forms   []*regexp.Regexp
	secrets *redact.Redactor
}

func newRedactor(names []string) (*redactor, error) {
	secrets, err := redact.New(nil)
	if err != nil {
		return nil, err
	}
	r := &redactor{secrets: secrets, forms: []*regexp.Regexp{
		regexp.MustCompile(`S-1-5-21(-\d+)+`),                               // SIDs of a machine's or a domain's accounts
		regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`),                     // IPv4
		regexp.MustCompile(`(?i)\b([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b`),       // MAC
		regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`),                         // fingerprints of keys
		regexp.MustCompile(`(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), // GUIDs
		regexp.MustCompile(`(?i)[a-z]:\\Users\\[^\\\s"]+`),
		regexp.MustCompile(`/(home|Users)/[^/\s":,;]+`),
		regexp.MustCompile(`[\w.+-]+@[\w.-]*\w`),                // USER@HOST
		regexp.MustCompile(`\b[\pL\pN-]+(\.[\pL\pN-]+)+:\d+\b`), // HOST.DOMAIN:PORT
		regexp.MustCompile(`(?i)\blookup [\pL\pN.-]*[\pL\pN]`),  // what a resolver did not find
	}}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		if len(name) >= shortestName && !strings.EqualFold(name, "node") { // a word of swdt's own texts
			r.names = append(r.names, regexp.MustCompile(`(?i)(^|[^\pL\pN])`+regexp.QuoteMeta(name)+`($|[^\pL\pN])`))
		}
	}
	return r, nil
}

// mayBeIPv6 matches whole words with two colons at least: also times, and names as in C++.
var mayBeIPv6 = regexp.MustCompile(`[\pL\pN:.%]*:[\pL\pN.%]*:[\pL\pN:.%]*`)

// withoutIPv6 returns the mark if the word is an address, which the end of a sentence may follow.
func withoutIPv6(word string) string {
	if _, err := netip.ParseAddr(word); err == nil {
		return redact.Mark
	}
	address := strings.TrimRight(word, ":.")
	if _, err := netip.ParseAddr(address); err == nil {
		return redact.Mark + word[len(address):]
	}
	return word
}

// text replaces names, addresses and secrets.
func (r *redactor) text(text string) string {
	for _, name := range r.names {
		for again := true; again; { // neighbours share the character between them
			replaced := name.ReplaceAllString(text, "${1}"+redact.Mark+"${2}")
			again, text = replaced != text && name.MatchString(replaced), replaced
		}
	}
	return r.product(text)
}

// product replaces addresses and secrets, but no names: those of products, such as Windows Server 2022, may have a
// word that is a node's name, too.
func (r *redactor) product(text string) string {
	text = mayBeIPv6.ReplaceAllStringFunc(text, withoutIPv6)
	for _, form := range r.forms {
		text = form.ReplaceAllString(text, redact.Mark)
	}
	return strings.TrimSuffix(string(r.secrets.Bytes([]byte(text))), "\n")
}

// redact replaces names, addresses and secrets in every text that came from the node.
func (r *Report) redact(names []string) {
	red, err := newRedactor(names)
	if err != nil { // only patterns of a user can be wrong
		panic(err)
	}
	for _, text := range []*string{&r.System.Product, &r.System.Build, &r.System.Architecture, &r.System.OpenSSH} {
		*text = red.product(*text)
	}
	r.CleanUp = red.text(r.CleanUp)
	for i := range r.Claims {
		c := &r.Claims[i]
		c.Reason = red.text(c.Reason)
		for j := range c.Answers {
			c.Answers[j].Value = red.text(c.Answers[j].Value)
		}
	}
}
