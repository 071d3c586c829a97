//go:build oracles

package redact_test

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// sourceCode matches examples in the form of a programming language or of make. Files of nodes do not have them.
var sourceCode = regexp.MustCompile("^(string|String|var) |^\\S+ (:{1,3}|\\?)= |^\\$\\S+ \\.= |setProperty|`")

// leastOrdinarySecrets and leastJWTs are the minimum percentages of gitleaks' examples whose secret is redacted.
const (
	leastOrdinarySecrets = 98.0
	leastJWTs            = 95.0
)

// accepted has the rules whose examples stay, with the reason.
func accepted() map[string]string {
	const uuid = "a UUID behind a name such as SNYK_KEY: UUIDs stay, since logs of nodes are full of them"
	return map[string]string{
		"kubernetes-secret-yaml": "gitleaks takes the whole document as the secret; package document redacts its data",
		"private-key":            "gitleaks takes the marker lines as a part of the secret",
		"heroku-api-key":         uuid,
		"hubspot-api-key":        uuid,
		"messagebird-client-id":  "a client ID is no secret, and a UUID",
		"snyk-api-token":         uuid,
		"sumologic-access-id":    "an access ID is no secret",
		"nuget-config-password":  "the value of an attribute \"key\" names the secret of \"value\" in swdt's document pass alone",
	}
}

// withoutUser returns the password of user:password, which some rules take as one secret.
func withoutUser(rule, secret string) string {
	if _, password, ok := strings.Cut(secret, ":"); ok && (rule == "curl-auth-user" || rule == "sidekiq-sensitive-url") {
		return password
	}
	return secret
}

// TestGitleaks redacts the examples of secrets from which gitleaks' rules are tested. SWDT_GITLEAKS is the file that
// scripts/oracles.sh makes of gitleaks 8.30.1 (MIT, https://github.com/gitleaks/gitleaks); most examples are random. Each
// form counts as redacted if no eight characters of a secret are left.
func TestGitleaks(t *testing.T) {
	file, err := os.Open(os.Getenv("SWDT_GITLEAKS"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	type rate struct{ all, gone int }
	classes, left := map[string]rate{}, map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Rule, Text string
			Secrets    []string
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		class := "ordinary forms"
		switch {
		case accepted()[e.Rule] != "":
			class = "accepted"
		case e.Rule == "jwt-base64":
			class = "base64 of JWTs"
		case sourceCode.MatchString(e.Text):
			class = "source code"
		}
		f := form{text: e.Text, rest: []string{e.Text}}
		for _, secret := range e.Secrets {
			if secret != "" {
				f.secrets = append(f.secrets, withoutUser(e.Rule, secret))
				f.rest[0] = strings.ReplaceAll(f.rest[0], f.secrets[len(f.secrets)-1], "\x00")
			}
		}
		one := classes[class]
		one.all++
		if f.survivor(r.String(e.Text)) == "" {
			one.gone++
		} else if class == "ordinary forms" {
			left[e.Rule]++
			if left[e.Rule] == 1 {
				t.Logf("%s: %q", e.Rule, e.Text)
			}
		}
		classes[class] = one
	}
	for class, one := range classes {
		t.Logf("%s: %d of %d redacted (%.1f %%)", class, one.gone, one.all, percent(one.gone, one.all))
	}
	t.Logf("ordinary forms left, by rule: %v", left)
	for class, least := range map[string]float64{"ordinary forms": leastOrdinarySecrets, "base64 of JWTs": leastJWTs} {
		if one := classes[class]; one.all == 0 || percent(one.gone, one.all) < least {
			t.Errorf("%s: %d of %d redacted, want %.0f %%", class, one.gone, one.all, least)
		}
	}
}
