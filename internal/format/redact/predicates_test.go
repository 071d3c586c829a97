package redact

import (
	"strings"
	"testing"
)

// TestPredicatesAtTheirBounds tries predicates of values with the last value on each side.
func TestPredicatesAtTheirBounds(t *testing.T) {
	byteOf := func(is func(byte) bool) func([]byte) bool { return func(v []byte) bool { return is(v[0]) } }
	for name, test := range map[string]struct {
		is      func([]byte) bool
		yes, no []string
	}{
		"isNoValue": {isNoValue, []string{"true", "FALSE", "none", "<nil>", "(none)", "undefined", "redacted", "...", "-",
			"0", "1"}, []string{"2", "truer", "nones", "--"}},
		"random of 6 bytes": {func(v []byte) bool { return random(v, 6) },
			[]string{"abcde1", "1bcdef", "11111ab", "11111a#", "12345!a"},
			[]string{"abcd1", "abcdef", "123456", "11111a", "11111a-", "11111#", "11111a[]", "sha256:abcde1", "0xabcde1",
				"01234567-89ab-cdef-0123-456789abcdef"}},
		"isIdentifier": {isIdentifier, []string{"sha256:1", "0x1", "01234567-89ab-cdef-0123-456789abcdef"},
			[]string{"sha25:1", "x0", "01234567-89ab-cdef-0123-456789abcde", "01234567-89ab-cdef-0123-456789abcdef0",
				"01234567089ab-cdef-0123-456789abcdef", "01234567-89ab0cdef-0123-456789abcdef",
				"01234567-89ab-cdef00123-456789abcdef", "01234567-89ab-cdef-01230456789abcdef"}},
		"alreadyRedacted": {alreadyRedacted, []string{"*", "***", "xxx", "XXX", "...", Mark, Mark + ","},
			[]string{"**x", "xxy", "xX", "a", Mark + ",,"}},
		"refers": {refers, []string{"$AB", "$A_B", "$A1", "${a}", "$(a)", "%a%", "%%1842", "<a>"},
			[]string{"$A", "$ab", "$1A", "%ab", "<ab", "a<b>", "<>"}},
		"isVariable":       {isVariable, []string{"A", "A_Z", "_", "A1"}, []string{"a", "A-", "1A"}},
		"isKubernetesName": {isKubernetesName, []string{"a/z", "a0.-/9"}, []string{"a", "a/b/c", "A/b", "a/_", "a/{", "`/a"}},
		"isPath": {isPath, []string{`C:\`, `z:/a`, "/", "/etc/a", "/ETC/a", "./a", "../a", "~/a", `\\a`, "file:a", "HKLM\\a"},
			[]string{`C:`, `C:a`, `1:\`, "/etc/", "/a", "~", "etc/a", "//"}},
		"isDigit":  {byteOf(isDigit), []string{"0", "9"}, []string{"/", ":"}},
		"isUpper":  {byteOf(isUpper), []string{"A", "Z", "0"}, []string{"@", "[", "a"}},
		"isLetter": {byteOf(isLetter), []string{"A", "Z", "a", "z"}, []string{"@", "[", "`", "{", "0"}},
		"endsWord": {byteOf(endsWord), []string{" ", "\n", `"`, "'", "<", ">"}, []string{"(", "&", "=", "?", "!", "#", ";"}},
		"isSpace":  {byteOf(isSpace), []string{" ", "\t", "\r", "\n"}, []string{"\v", "!", "\x00"}},
	} {
		for _, value := range test.yes {
			if !test.is([]byte(value)) {
				t.Errorf("%s(%q) is false", name, value)
			}
		}
		for _, value := range test.no {
			if test.is([]byte(value)) {
				t.Errorf("%s(%q) is true", name, value)
			}
		}
	}
}

// A known token is redacted if it is as long as the vendor's shortest, and not if it is a byte shorter.
func TestTheShortestKnownTokens(t *testing.T) {
	r := tested(t)
	for prefix, least := range map[string]int{
		"AKIA": 16, "ASIA": 16, "ABIA": 16, "ACCA": 16, "AIza": 35, "AGE-SECRET-KEY-1": 40, "AKCp": 60, "ATATT3xFfGF0": 60,
		"ghp_": 30, "gho_": 30, "ghu_": 30, "ghs_": 30, "ghr_": 30, "github_pat_": 30, "glpat-": 16, "gldt-": 16,
		"glrt-": 16, "glcbt-": 16, "glptt-": 16, "glft-": 16, "glsoat-": 16, "glimt-": 16, "glagent-": 16, "glsa_": 32,
		"glc_": 32, "GOCSPX-": 20, "xoxb-": 16, "xoxp-": 16, "xoxa-": 16, "xoxr-": 16, "xoxs-": 16, "xoxo-": 16, "xoxc-": 16,
		"xoxd-": 16, "xoxe.": 16, "xoxe-": 16, "xapp-": 16, "npm_": 30, "hvs.": 20, "hvb.": 20, "hvr.": 20, "hf_": 30,
		"sk_live_": 16, "sk_test_": 16, "sk-": 40, "shpat_": 32, "shpss_": 32, "sntrys_": 40, "rk_live_": 16,
		"rk_test_": 16, "rubygems_": 40, "dckr_pat_": 20, "dckr_oat_": 20, "dop_v1_": 40, "doo_v1_": 40, "dor_v1_": 40,
		"dapi": 32, "dp.pt.": 40, "dp.st.": 40, "pypi-AgE": 40, "pul-": 40, "pscale_tkn_": 32, "pscale_pw_": 32, "SG.": 60,
		"SK": 32, "NRAK-": 27, "HRKU-": 32, "PMAK-": 50, "fo1_": 40, "lin_api_": 32, "tskey-": 24, "ya29.": 30,
	} {
		token := prefix + strings.Repeat("0123456789", 6)[:least]
		for text, want := range map[string]bool{token: true, token[:len(token)-1]: false} {
			got := r.String("got " + text + " here")
			if redacted := !strings.Contains(got, text); redacted != want {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}
